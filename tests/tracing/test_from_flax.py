"""Flax modules as modules, and modules as pure functions for JAX."""

import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sbpjax as flow
from sbpjax import nn, sbp

X = np.random.default_rng(0).standard_normal((8, 3)).astype("f")


class NNX(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.last = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.norm(self.first(x))))


class Linen(linen.Module):
    @linen.compact
    def __call__(self, x, train: bool = False):
        x = linen.Dense(4)(x)
        x = linen.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        return linen.Dense(2)(linen.relu(x))


@pytest.mark.parametrize("where", ["local", "S0,B"])
def test_nnx(where):
    source = NNX(nnx.Rngs(0))
    model = nn.from_flax(source)
    assert {"first.kernel", "first.bias", "norm.scale", "last.bias"} <= set(dict(model.named_parameters()))
    assert {"norm.mean", "norm.var"} <= set(dict(model.named_buffers())) and "first.kernel" in model.state_dict()
    x = flow.tensor(X)
    if where != "local":
        grid = flow.placement("cpu", [[0, 1], [2, 3]])
        model.to_global(grid, ["B", "B"])
        x = x.to_global(grid, where)
    model(x).pow(2).sum().backward()

    def loss(m):
        return (m(X) ** 2).sum()

    source.train()
    wanted = nnx.grad(loss)(source)
    np.testing.assert_allclose(model.first.kernel.grad.numpy(), wanted["first"]["kernel"][...], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.norm.mean.numpy(), source.norm.mean[...], rtol=1e-5)
    source.eval(), model.eval()
    before = model.norm.mean.numpy().copy()
    np.testing.assert_allclose(model(x).detach().numpy(), source(X), rtol=1e-4, atol=1e-5)
    assert (model.norm.mean.numpy() == before).all()


def test_nnx_dropout_draws_anew():
    model = nn.from_flax(nnx.Dropout(0.5, rngs=nnx.Rngs(0)))
    x = flow.ones(64)
    first, second = model(x), model(x)
    assert (first != second).any() and (model.eval()(x) == x).all()


class WithDropout(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(3, 64, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.last = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(self.first(x)))


def test_nnx_with_dropout_trains_as_flax_does():
    model, source = nn.from_flax(WithDropout(nnx.Rngs(0))), WithDropout(nnx.Rngs(0))
    optimizer = flow.optim.SGD(model.parameters(), lr=0.05)
    tuned = nnx.Optimizer(source, optax.sgd(0.05), wrt=nnx.Param)
    for _ in range(4):
        optimizer.zero_grad()
        loss = (model(flow.tensor(X)) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        wanted, grads = nnx.value_and_grad(lambda m: ((m(X) - 1) ** 2).mean())(source)
        tuned.update(source, grads)
        np.testing.assert_allclose(loss.item(), wanted, rtol=1e-5)
    assert int(model.drop.rngs.count.item()) == 4


def test_a_linen_module_needs_example_inputs():
    variables = linen.Dense(3).init(jax.random.key(0), X)
    with pytest.raises(TypeError, match=r"(?s)variables \(a dict with \['params'\]\).*rule:.*example inputs.*fix:"):
        nn.from_flax(linen.Dense(3), variables)
    with pytest.raises(TypeError, match="(?s)example inputs: none; init raised TypeError.*fix:"):
        nn.from_flax(linen.Dense(3))


def test_a_linen_module_that_is_told_whether_it_trains():
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x, deterministic):
            return linen.Dropout(0.5, deterministic=deterministic)(linen.Dense(3)(x))

    with pytest.raises(TypeError, match=r"fix:  nn.from_flax\(Net\(\.\.\.\), x, train='deterministic'\)"):
        nn.from_flax(Net(), X)
    assert nn.from_flax(Net(), X, train="deterministic").eval()(flow.tensor(X)).shape == (len(X), 3)


def test_linen_trains():
    model = nn.from_flax(Linen(), flow.tensor(X), train="train")
    assert "Dense_0.kernel" in dict(model.named_parameters()) and model.BatchNorm_0.mean.tolist() == [0] * 4
    optimizer = flow.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (model(flow.tensor(X)) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] and any(model.BatchNorm_0.mean.tolist())
    variables = {
        "params": {
            k: {n: p.detach().numpy() for n, p in getattr(model, k).named_parameters()}
            for k in ("Dense_0", "BatchNorm_0", "Dense_1")
        },
        "batch_stats": {"BatchNorm_0": {n: b.numpy() for n, b in model.BatchNorm_0.named_buffers()}},
    }
    wanted = Linen().apply(variables, X)
    np.testing.assert_allclose(model.eval()(flow.tensor(X)).detach().numpy(), wanted, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------------------------------------------ layouts


def train_steps(model, x, where, steps=3):
    optimizer = flow.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        loss = (model(where(x)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Sharded(nnx.Module):
    """A model with layers sharded by metadata, batch statistics and dropout."""

    def __init__(self, rngs, names=(None, "model"), eager=True):
        metadata = {"out_sharding": names, "eager_sharding": eager}
        self.first = nnx.Linear(3, 64, rngs=rngs, kernel_metadata=metadata)
        self.norm = nnx.BatchNorm(64, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.last = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.drop(self.norm(self.first(x))))


@pytest.mark.parametrize("types", [AxisType.Auto, AxisType.Explicit])
def test_sharded_nnx_module_keeps_its_layouts(types):
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(types,) * 2)
    with jax.set_mesh(mesh):
        model = nn.from_flax(Sharded(nnx.Rngs(0)))
    assert model.first.kernel.sbp == (sbp.broadcast, sbp.split(1)) and model.first.kernel.placement.mesh == mesh
    assert {t.placement.axis_names for t in (*model.parameters(), *model.buffers())} == {("data", "model")}
    assert model.last.kernel.sbp == model.norm.mean.sbp == (sbp.broadcast,) * 2
    assert model.logical_axes == {"first.kernel": (None, "model")}
    place = model.first.kernel.placement
    losses = train_steps(model, flow.tensor(X), lambda x: x.to_global(place, {"data": sbp.split(0)}))
    expected = train_steps(nn.from_flax(Sharded(nnx.Rngs(0), eager=False)), flow.tensor(X), lambda x: x)
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert model.first.kernel.sbp == (sbp.broadcast, sbp.split(1))


def test_logical_axes_become_layouts_by_rules():
    p = flow.placement(jax.make_mesh((2, 4), ("data", "model")))
    source = Sharded(nnx.Rngs(0), ("embed", "mlp"), eager=False)
    model = nn.from_flax(source, placement=p, rules={"mlp": "model", "embed": None})
    assert model.logical_axes == {"first.kernel": ("embed", "mlp")}
    assert model.first.kernel.sbp == (sbp.broadcast, sbp.split(1)) and model.first.bias.sbp == (sbp.broadcast,) * 2
    assert nn.from_flax(source, placement=p).first.kernel.sbp == (sbp.broadcast,) * 2
    with pytest.raises(flow.errors.SbpError, match=r"(?s)axis 'rows'.*fix: "):
        nn.from_flax(source, placement=p, rules={"mlp": "rows"})


def test_linen_partitioning_becomes_layouts():
    p = flow.placement("cpu", [[0, 1], [2, 3]], axis_names=("data", "model"))
    kernel = linen.with_partitioning(linen.initializers.lecun_normal(), ("embed", "model"))
    model = nn.from_flax(linen.Dense(4, kernel_init=kernel), flow.tensor(X), placement=p, rules={"embed": "data"})
    assert model.logical_axes == {"kernel": ("embed", "model")}
    assert model.kernel.sbp == (sbp.split(0), sbp.split(1)) and model.bias.sbp == (sbp.broadcast,) * 2
    alone = nn.from_flax(linen.Dense(4, kernel_init=kernel), flow.tensor(X))
    np.testing.assert_allclose(
        model(flow.tensor(X).to_global(p, "S0,B")).numpy(), alone(flow.tensor(X)).numpy(), rtol=1e-5
    )


def test_modules_sharded_over_two_meshes_are_refused():
    source = Sharded(nnx.Rngs(0), eager=False)
    for number, layer in enumerate((source.first, source.last)):
        mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[2 * number : 2 * number + 2])
        layer.kernel[...] = jax.device_put(layer.kernel[...], NamedSharding(mesh, PartitionSpec()))
    with pytest.raises(flow.errors.MixedTensorError, match=r"(?s)one placement.*fix: .*placement="):
        nn.from_flax(source)


# ---------------------------------------------------------------------------------------------- a module inside NNX


def ours(seed=0):
    flow.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


class Around(nnx.Module):
    """A model of NNX with a layer of this package inside."""

    def __init__(self, inner, rngs):
        self.inner = inner
        self.last = nnx.Linear(1, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.inner(x))


@pytest.mark.parametrize("jit", [False, True])
def test_module_inside_nnx_trains_as_here(jit):
    """Ours in theirs and theirs in ours: the same losses, parameters and batch statistics."""
    source = Around(nn.to_flax(ours()), nnx.Rngs(1))
    model = nn.Sequential(ours(), nn.from_flax(nnx.Linear(1, 1, rngs=nnx.Rngs(1))))
    optimizer = nnx.Optimizer(source, optax.sgd(0.05), wrt=nnx.Param)

    def step(m, tuned, x):
        loss, grads = nnx.value_and_grad(lambda m: ((m(x) - 1) ** 2).mean())(m)
        tuned.update(m, grads)
        return loss

    step = nnx.jit(step) if jit else step
    source.train()
    losses = [float(step(source, optimizer, X)) for _ in range(4)]
    np.testing.assert_allclose(losses, train_steps(model, flow.tensor(X), lambda x: x, 4), rtol=1e-5)
    for name, value in model[0].named_parameters():
        np.testing.assert_allclose(source.inner.params[name][...], value.detach().numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(source.inner.stats["1.running_mean"][...], model[0][1].running_mean.numpy(), rtol=1e-4)
    source.eval()
    before = source.inner.stats["1.running_mean"][...]
    np.testing.assert_allclose(source(X), model.eval()(flow.tensor(X)).detach().numpy(), rtol=1e-4, atol=1e-6)
    assert (source.inner.stats["1.running_mean"][...] == before).all()


def test_global_module_in_nnx_has_sharded_parameters():
    mesh = jax.make_mesh((2, 4), ("data", "model"))
    p = flow.placement(mesh)
    layer = nn.to_flax(nn.Linear(8, 8).to_global(p, {"model": sbp.split(0)}))
    assert layer.params["weight"][...].sharding == NamedSharding(mesh, PartitionSpec("model"))
    x = jax.device_put(np.ones((8, 8), "f"), NamedSharding(mesh, PartitionSpec("data")))
    with jax.set_mesh(mesh):
        grads = nnx.jit(nnx.grad(lambda m, x: (m(x) ** 2).sum()))(layer, x)
    weight, bias = (np.asarray(layer.params[n][...]) for n in ("weight", "bias"))
    expected = 2 * (np.ones((8, 8), "f") @ weight.T + bias).T @ np.ones((8, 8), "f")
    np.testing.assert_allclose(grads["params"]["weight"][...], expected, rtol=1e-4)


def test_dropout_of_a_module_inside_nnx_draws_from_its_rngs():
    layer = nn.to_flax(nn.Dropout(0.5), rngs=nnx.Rngs(0))
    call = nnx.jit(lambda m, x: m(x))
    x = jnp.ones(64)
    assert (call(layer, x) != call(layer, x)).any()
    layer.eval()
    assert (call(layer, x) == x).all()


def test_to_flax_takes_modules():
    with pytest.raises(TypeError, match=r"(?s)nn.to_flax.*seen: a Linear.*fix: "):
        nn.to_flax(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))


def test_no_flax_module():
    with pytest.raises(TypeError, match="flax"):
        nn.from_flax(nn.Linear(1, 1))


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def test_to_pure_under_jax_transforms():
    model = network()
    apply, params = nn.to_pure(model, mutable=True)
    assert set(params) == set(dict(model.named_parameters()))

    def loss(params, x):
        outs, buffers = apply(params, x)
        return (outs**2).sum(), buffers

    (value, buffers), grads = jax.jit(jax.value_and_grad(loss, has_aux=True))(params, X)
    assert not model[1].running_mean.any()
    out = model(flow.tensor(X)).pow(2).sum()
    out.backward()
    np.testing.assert_allclose(value, out.item(), rtol=1e-5)
    for name, p in model.named_parameters():
        np.testing.assert_allclose(grads[name], p.grad.numpy(), rtol=1e-4, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(buffers["1.running_mean"], model[1].running_mean.numpy(), rtol=1e-5)


def test_to_pure_with_optax_keys_and_tied_weights():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Dropout(0.5), nn.Linear(3, 3, bias=False))
    model[2].weight = model[0].weight
    apply, params = nn.to_pure(model)
    assert list(params) == ["0.weight"]
    same = [apply(params, jnp.asarray(X), key=jax.random.key(k)) for k in (0, 0, 1)]
    assert (same[0] == same[1]).all() and (same[0] != same[2]).any()
    model.eval()
    optimizer = optax.sgd(0.05)
    state = optimizer.init(params)
    grads = jax.grad(lambda p: ((apply(p, X) - 1) ** 2).mean())(params)
    updates, state = optimizer.update(grads, state)
    params = optax.apply_updates(params, updates)
    weight = params["0.weight"]
    np.testing.assert_allclose(apply(params, X), X @ weight.T @ weight.T, rtol=1e-4, atol=1e-5)


def test_to_pure_of_global_parameters_gives_sharded_arrays():
    line = flow.placement("cpu", [0, 1])
    apply, params = nn.to_pure(nn.Linear(3, 4).to_global(line, "S0"))
    assert len(params["weight"].sharding.device_set) == 2
    assert jax.jit(apply)(params, jnp.asarray(X)).shape == (8, 4)


def test_to_pure_keeps_a_backward_of_the_user_s_own():
    class Double(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(flow.ones(3))

        def forward(self, x):
            return Double.apply(self.weight * x)

    apply, params = nn.to_pure(Model())
    assert jax.grad(lambda p: apply(p, jnp.ones(3)).sum())(params)["weight"].tolist() == [7, 7, 7]
