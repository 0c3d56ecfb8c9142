"""Ops inside programs of JAX: under explicit axes, with tensors that they close over, in shard_map, after the trace."""

import contextlib
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sbpjax as flow
from sbpjax import nn, optim, sbp
from sbpjax.errors import MixedTensorError, OpError, SbpError

NAMES = ("data", "model")


@pytest.fixture(params=["argument", "ambient"])
def mesh(request):
    """A mesh of explicit axes, known from the types of arguments alone or also as the ambient one."""
    mesh = jax.make_mesh((2, 4), NAMES)
    if request.param == "argument":
        yield mesh
    else:
        with jax.set_mesh(mesh):
            yield mesh


def sharded(mesh, *spec, shape=(8, 8), seed=0):
    value = np.random.default_rng(seed).standard_normal(shape).astype("f")
    return jax.device_put(value, NamedSharding(mesh, PartitionSpec(*spec)))


def of(work):
    """Return a function of arrays from one of tensors."""
    return lambda *arrays: work(*map(flow.from_jax, arrays)).jax()


@pytest.mark.parametrize(
    "left, right, expected",
    [
        ((None, "data"), ("data", None), (None, None)),  # ambiguous by the rules of types
        (("data", "model"), ("model", None), ("data", None)),
        (("data", None), (None, "model"), ("data", "model")),
        (("data", "model"), ("data", "model"), ("data", None)),
    ],
)
def test_product_is_planned(mesh, left, right, expected):
    a, b = sharded(mesh, *left), sharded(mesh, *right, seed=1)
    types = []

    def f(a, b):
        y = of(lambda x, w: x @ w)(a, b)
        types.append(jax.typeof(y).sharding.spec)
        return y

    found = jax.jit(f)(a, b)
    np.testing.assert_allclose(found, np.asarray(a) @ np.asarray(b), rtol=1e-5, atol=1e-5)
    assert types == [PartitionSpec(*expected)]
    assert found.sharding.is_equivalent_to(NamedSharding(mesh, PartitionSpec(*expected)), 2)


OPS = {
    "softmax": lambda x: flow.softmax(x, 1),
    "reshape": lambda x: x.reshape(4, 2, 8),
    "sum": lambda x: x.sum(0),
    "max and index": lambda x: x.max(1).values,
    "cat": lambda x: flow.cat([x, x]),
    "layer_norm": lambda x: nn.functional.layer_norm(x, (8,)),
    "uneven": lambda x: x[:7] * 2,
    "scalar": lambda x: 2.0 - x,
    "cast": lambda x: x.double().float(),
}


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("spec", [("data", "model"), (("data", "model"),), (None, "model")])
def test_op_and_its_gradient_have_the_values_of_one_device(mesh, name, spec):
    a = sharded(mesh, *spec)
    whole = jnp.asarray(np.asarray(a))
    f, plain = of(OPS[name]), OPS[name]
    np.testing.assert_allclose(jax.jit(f)(a), plain(flow.from_jax(whole)).numpy(), rtol=1e-5, atol=1e-6)
    loss = lambda x: (f(x) ** 3).sum()  # noqa: E731
    found = jax.jit(jax.grad(loss))(a)
    assert found.sharding.is_equivalent_to(a.sharding, 2)
    x = flow.from_jax(whole).requires_grad_()
    (plain(x) ** 3).sum().backward()
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_pure_module_trains_under_explicit_axes(mesh):
    flow.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))
    apply, params = nn.to_pure(model)
    a = sharded(mesh, "data", "model")
    specs = {"0.weight": ("model", None), "3.weight": (None, "model")}
    placed = {k: jax.device_put(v, NamedSharding(mesh, PartitionSpec(*specs.get(k, ())))) for k, v in params.items()}
    found = jax.jit(jax.grad(lambda p, x: (apply(p, x) ** 2).mean()))(placed, a)
    expected = jax.grad(lambda p, x: (apply(p, x) ** 2).mean())(params, jnp.asarray(np.asarray(a)))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6)
        assert found[name].sharding.is_equivalent_to(placed[name].sharding, value.ndim)


def test_to_global_is_a_reshard(mesh):
    p = flow.placement(mesh)
    types = []

    def f(a):
        y = flow.from_jax(a).to_global(p, {"model": sbp.split(1)}).jax()
        types.append(jax.typeof(y).sharding.spec)
        return y

    a = sharded(mesh, "data")
    np.testing.assert_array_equal(jax.jit(f)(a), a)
    assert types == [PartitionSpec(None, "model")]


def test_export_with_a_symbolic_size(mesh):
    with jax.set_mesh(mesh):
        shape = jax.export.symbolic_shape("b, 8")
        exported = jax.export.export(jax.jit(of(lambda x: flow.softmax(x, 1))))(jax.ShapeDtypeStruct(shape, "float32"))
    assert str(exported.out_avals[0].shape) == "(b, 8)"  # JAX 0.10 cannot call a program of its own with such a size


def test_unreduced_argument_is_summed(mesh):
    spec = PartitionSpec("data", unreduced={"model"})
    x = flow.arange(64.0).reshape(8, 8).to_global(flow.placement(mesh), spec)
    kept = jax.jit(of(lambda t: t))(x)
    assert flow.from_jax(kept).sbp == x.sbp
    found = jax.jit(of(lambda t: t.exp()))(x * 0.01)
    np.testing.assert_allclose(found, np.exp(x.numpy() * 0.01), rtol=1e-6)


def test_axis_that_stays_auto(mesh):
    mixed = jax.make_mesh((2, 4), NAMES, axis_types=(AxisType.Explicit, AxisType.Auto))
    a, b = sharded(mixed, None, "data"), sharded(mixed, "data", "model", seed=1)
    with jax.set_mesh(mixed):
        found = jax.jit(of(lambda x, w: x @ w))(a, b)
    np.testing.assert_allclose(found, np.asarray(a) @ np.asarray(b), rtol=1e-5, atol=1e-5)


TRANSFORMS = {
    "grad": flow.func.grad(lambda x: (x * x).sum()),
    "grad of what it closes over": lambda x: flow.func.grad(lambda row: (row @ x).sin().sum())(x),
    "vmap": lambda x: flow.func.vmap(lambda row: (row * x.sum(0)).sum())(x),
    "vmap of grad": flow.func.vmap(flow.func.grad(lambda row: (row * row).sum())),
    "jvp": lambda x: flow.func.jvp(flow.exp, (x,), (x,))[1],
    "vjp": lambda x: flow.func.vjp(flow.exp, x)[1](x)[0],
    "jacrev": flow.func.jacrev(lambda x: (x * x).sum(1)),
    "hessian": lambda x: flow.func.hessian(lambda row: (row**3).sum())(x[0]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_sbpjax_under_explicit_axes(mesh, name):
    """A transform is traced with the types of the program that it is a part of."""
    a = sharded(mesh, "data", "model")
    expected = TRANSFORMS[name](flow.from_jax(jnp.asarray(np.asarray(a)))).numpy()
    np.testing.assert_allclose(jax.jit(of(TRANSFORMS[name]))(a), expected, rtol=1e-5, atol=1e-5)


def test_second_gradient_under_explicit_axes(mesh):
    def second(x):
        x = x.detach().requires_grad_()
        (first,) = flow.autograd.grad((x**3).sum(), x, create_graph=True)
        return flow.autograd.grad((first**2).sum(), x)[0]

    a = sharded(mesh, "data", "model")
    np.testing.assert_allclose(jax.jit(of(second))(a), 36 * np.asarray(a) ** 3, rtol=1e-5, atol=1e-5)


def test_vmap_and_scan_under_explicit_axes(mesh):
    a, w = sharded(mesh, None, "data", None, shape=(3, 8, 8)), sharded(mesh, "model", seed=1)

    def f(a, w):
        product = of(lambda x, y: x @ y)
        rows = jax.vmap(lambda x: product(x, w))(a)
        carry, _ = jax.lax.scan(lambda c, x: (c + product(x, w), None), jnp.zeros_like(rows[0]), a)
        return rows, carry

    rows, carry = jax.jit(f)(a, w)
    expected = np.asarray(a) @ np.asarray(w)
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(carry, expected.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("types", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("ambient", [False, True])
def test_random_layouts_there_and_back_inside_jit(types, ambient):
    draw = random.Random(1)
    for _ in range(6):
        sizes = draw.choice([(2, 4), (2, 2, 2)])
        mesh = jax.make_mesh(
            sizes, tuple(draw.sample(["data", "model", "x"], len(sizes))), axis_types=(types,) * len(sizes)
        )
        shape = draw.choice([(8, 16), (16, 8, 8)])
        codes = tuple(draw.choice([-1, *range(len(shape))]) for _ in sizes)
        x = (
            flow.arange(float(np.prod(shape)))
            .reshape(*shape)
            .to_global(flow.placement(mesh), sbp.algebra.to_sbp(codes))
        )
        if not x.layout.is_even:
            continue
        if ambient:
            with jax.set_mesh(mesh):
                found = jax.jit(of(lambda t: t))(x)
        else:
            found = jax.jit(of(lambda t: t))(x)
        y = flow.from_jax(found)
        assert (y.sbp, y.placement.mesh) == (x.sbp, mesh)
        np.testing.assert_array_equal(y.numpy(), x.numpy())


# ---------------------------------------------------------------------------------------------------- closed over


@pytest.fixture(params=[AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def any_mesh(request):
    return jax.make_mesh((2, 4), NAMES, axis_types=(request.param,) * 2)


@pytest.mark.parametrize("ambient", [False, True])
@pytest.mark.parametrize("given", ["S0,B", "B,S1", "P,B", "B,B"])
def test_global_tensor_that_a_program_closes_over(any_mesh, ambient, given):
    p = flow.placement(any_mesh)
    x = flow.arange(64.0).reshape(8, 8).to_global(p, given)
    a = sharded(any_mesh, "data")

    def f(b):
        both = flow.from_jax(b) + x  # with an argument
        alone = (x @ x + x.to_global(sbp="B,S0")).to_global(sbp="B,B")  # a value, computed now
        return both.jax() + alone.jax()

    expected = np.asarray(a) + x.numpy() + x.numpy() @ x.numpy() + x.numpy()
    for _ in range(2):
        if ambient:
            with jax.set_mesh(any_mesh):
                found = jax.jit(f)(a)
        else:
            found = jax.jit(f)(a)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal((x + 1).numpy(), np.arange(64, dtype="f").reshape(8, 8) + 1)


@pytest.mark.parametrize("types", [AxisType.Auto, AxisType.Explicit])
def test_global_tensor_of_other_devices_that_a_program_closes_over(any_mesh, types):
    other = jax.make_mesh((4,), ("x",), axis_types=(types,), devices=jax.devices()[4:])
    w, a = flow.from_jax(sharded(other, "x")), sharded(any_mesh, "data", seed=1)
    found = jax.jit(of(lambda x: x @ w))(a)
    np.testing.assert_allclose(found, np.asarray(a) @ w.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad, optim.LAMB])
def test_optimizer_of_a_program(any_mesh, make):
    """A program may make parameters and step them; its results are those of one device."""

    def train(x):
        weight = nn.Parameter(x.detach())
        optimizer = make([weight], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (weight**2).mean().backward()
            optimizer.step()
        return weight.detach()

    a = sharded(any_mesh, "data", "model")
    expected = train(flow.from_jax(jnp.asarray(np.asarray(a))))
    np.testing.assert_allclose(jax.jit(of(train))(a), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_step_of_parameters_that_a_program_closes_over_is_refused():
    weight = nn.Parameter(flow.ones(8))
    optimizer = optim.SGD([weight], lr=0.1)

    def f(a):
        (flow.from_jax(a) * weight).sum().backward()
        optimizer.step()
        return a

    with pytest.raises(OpError, match=r"(?s)SGD.step\(\) inside a program.*closes over.*fix: .*nn.to_pure"):
        jax.jit(f)(jnp.ones(8))
    np.testing.assert_array_equal(weight.detach().numpy(), np.ones(8))


def test_compiled_function_is_a_part_of_a_program(any_mesh):
    a = sharded(any_mesh, "data")
    found = jax.jit(of(flow.compile(lambda x: x @ x)))(a)
    np.testing.assert_allclose(found, np.asarray(a) @ np.asarray(a), rtol=1e-5, atol=1e-5)


def test_uneven_tensor_that_a_program_closes_over(any_mesh):
    x = flow.arange(49.0).reshape(7, 7).to_global(flow.placement(any_mesh), "S0,B")
    found = jax.jit(lambda b: b + (x @ x).sum().to_local().jax() + flow.from_jax(b[0, 0]).jax() * x.sum().item())(
        sharded(any_mesh) * 0
    )
    np.testing.assert_allclose(found, np.full((8, 8), (x.numpy() @ x.numpy()).sum()), rtol=1e-6)


def test_partial_sum_as_a_constant_is_refused(any_mesh):
    x = flow.ones(8, 8).to_global(flow.placement(any_mesh), "P,B")
    with pytest.raises(SbpError, match=r"(?s)unreduced constant.*fix: .*as an argument"):
        jax.jit(lambda b: b + x.jax())(sharded(any_mesh))


# --------------------------------------------------------------------------------------------------------- manual axes


def test_local_ops_run_on_blocks_in_shard_map(any_mesh):
    rows, bias = PartitionSpec("data"), flow.arange(8.0)
    work = of(lambda x: (x + bias).exp() * 2)
    with jax.set_mesh(any_mesh):
        a = sharded(any_mesh, "data")
        found = jax.shard_map(work, in_specs=rows, out_specs=rows)(a)
    np.testing.assert_allclose(found, np.exp(np.asarray(a) + np.arange(8, dtype="f")) * 2, rtol=1e-5)


@pytest.mark.parametrize(
    "work",
    [
        lambda b, x: flow.from_jax(b) + x,
        lambda b, x: (x + x) * 2,
        lambda b, x: flow.from_jax(b).to_global(x.placement, x.sbp),
        lambda b, x: x.to_global(sbp="B,B"),
        lambda b, x: flow.ones(4, 8, placement=x.placement, sbp=x.sbp),
        lambda b, x: flow.randn(4, 8, placement=x.placement, sbp=x.sbp),
    ],
)
def test_global_tensors_are_refused_in_shard_map(any_mesh, work):
    x = flow.ones(8, 8, placement=flow.placement(any_mesh), sbp="S0,B")
    rows = PartitionSpec("data")
    f = jax.shard_map(lambda b: work(b, x).jax(), mesh=any_mesh, in_specs=rows, out_specs=rows)
    with pytest.raises(
        MixedTensorError, match=r"(?s)inside jax.shard_map.*manual axes.*block of one rank.*fix: .*in_specs"
    ):
        f(sharded(any_mesh, "data"))


# ------------------------------------------------------------------------------------------------------ leaked tracers


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: x.sum().item(),
        lambda x: x.numpy(),
        lambda x: x.jax(),
        lambda x: jnp.sum(x),
        lambda x: jax.jit(jnp.sum)(x),
        lambda x: jax.jit(lambda a: (flow.from_jax(a) + x).jax())(jnp.ones((8, 8))),
        lambda x: flow.save({"x": x}, "nowhere"),
        lambda x: flow.compile(lambda y: y + 1)(x),
        lambda x: Doubled()(x),
    ],
)
def test_leaked_tensor_is_named(use):
    for transform in (jax.jit, jax.vmap, lambda f: jax.grad(lambda a: f(a).sum())):
        leaked = []
        transform(lambda a, leaked=leaked: (leaked.append(flow.from_jax(a).exp()), a)[1])(jnp.ones((8, 8)))
        with pytest.raises(OpError, match=r"(?s)a trace that is over.*seen: float.*fix: .*return x.jax\(\) instead"):
            use(leaked[0])


class Doubled(nn.Graph):
    def build(self, x):
        return x * 2


@pytest.mark.parametrize("transform", [jax.jit, lambda f: jax.grad(lambda a: f(a).sum())], ids=["jit", "grad"])
@pytest.mark.parametrize("make", [optim.SGD, optim.Adam])
def test_leaked_gradient_is_named(transform, make):
    weight = nn.Parameter(flow.ones(8))
    optimizer, losses = make([weight], lr=0.1), []

    def f(a):
        losses.append((flow.from_jax(a) * weight).sum())
        losses[0].backward(retain_graph=True)
        return a

    transform(f)(jnp.ones(8))
    for use in (optimizer.step, losses[0].backward):
        with pytest.raises(OpError, match=r"(?s)a trace that is over.*seen: float.*fix: .*return x.jax\(\) instead"):
            use()


def test_tensor_of_an_outer_trace_is_no_leak():
    def f(a):
        x = flow.from_jax(a)
        scanned, _ = jax.lax.scan(lambda c, _: ((flow.from_jax(c) + x).jax(), None), a, None, length=2)
        branch = jax.lax.cond(True, lambda c: (flow.from_jax(c) + x).jax(), lambda c: c, a)
        grad = jax.grad(lambda c: (flow.from_jax(c) * x).sum().jax())(a)
        mapped = jax.vmap(lambda c: (flow.from_jax(c) + x).jax())(a)
        again = jax.checkpoint(lambda c: (flow.from_jax(c) + x).jax())(a)
        return scanned + branch + grad + mapped.sum(0) + again + jax.jit(lambda c: (flow.from_jax(c) + x).jax())(a)

    np.testing.assert_array_equal(jax.jit(f)(jnp.ones(3)), np.full(3, 3 + 2 + 1 + 6 + 2 + 2))


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad], ids=["jit", "vmap", "grad"])
def test_tensor_returned_to_jax_is_named(transform):
    with pytest.raises(OpError, match=r"(?s)a trace that is over.*fix: .*return x.jax\(\) instead"):
        transform(lambda a: flow.from_jax(a).sum())(jnp.ones((8, 8)))


@pytest.fixture
def auto_mesh():
    return jax.make_mesh((2, 4), NAMES, axis_types=(AxisType.Auto,) * 2)


@pytest.mark.parametrize("ambient", [False, True])
def test_to_global_constrains_auto_axes(auto_mesh, ambient):
    p, a = flow.placement(auto_mesh), sharded(auto_mesh, "data")
    work = of(lambda x: x.to_global(p, {"model": sbp.split(1)}))
    whole = jax.grad(
        lambda a: (of(lambda x: x.to_global(p, {"model": sbp.split(1)}, grad_sbp=[sbp.broadcast] * 2))(a) ** 2).sum()
    )
    with jax.set_mesh(auto_mesh) if ambient else contextlib.nullcontext():
        assert jax.jit(work)(a).sharding.spec == PartitionSpec(None, "model")
        assert jax.jit(jax.vmap(work))(jnp.stack([a, a])).sharding.spec == PartitionSpec(None, None, "model")
        assert jax.jit(whole)(a).sharding.is_fully_replicated
        np.testing.assert_array_equal(jax.jit(whole)(a), 2 * a)


@pytest.mark.parametrize("ranks", [[0, 1, 2, 3], [[7, 6, 5, 4], [3, 2, 1, 0]]])
def test_to_global_on_other_devices_is_refused(mesh, ranks):
    p = flow.placement("cpu", ranks)
    with jax.set_mesh(mesh), pytest.raises(MixedTensorError, match=r"(?s)one mesh.*placement.current\(\)"):
        jax.jit(of(lambda x: x.to_global(p, [sbp.broadcast] * len(p.hierarchy))))(sharded(mesh, "data"))


def test_array_of_another_mesh_is_named(mesh):
    other = jax.make_mesh((4, 2), ("a", "b"))
    with (
        jax.set_mesh(mesh),
        pytest.raises(MixedTensorError, match=r"(?s)one mesh.*jax.set_mesh\(array.sharding.mesh\)"),
    ):
        jax.jit(of(flow.exp))(sharded(other, "a"))


@pytest.mark.parametrize("name", ["sbp", "placement"])
def test_layout_of_a_traced_tensor_is_that_of_its_type(mesh, name):
    with pytest.raises(MixedTensorError, match=r"(?s)inside a function of JAX.*jax.typeof"):
        jax.jit(of(lambda x: getattr(x, name)))(sharded(mesh, "data"))
    seen = []
    jax.jit(of(lambda x: seen.append(x.sharding.spec) or x))(sharded(mesh, "data"))
    assert seen == [PartitionSpec("data", None)]


def test_grad_and_vmap_without_jit_take_global_tensors(auto_mesh):
    a, w = sharded(auto_mesh, "data"), sharded(auto_mesh, None, "model", seed=1)
    x, weight = flow.from_jax(a), flow.from_jax(w)
    expected = jax.grad(lambda w: jnp.tanh(np.asarray(a) @ w).sum())(np.asarray(w))
    for loss in (lambda w, x: flow.tanh(x @ flow.from_jax(w)).sum().jax(), lambda w, x: jnp.tanh(x @ w).sum()):
        grad = jax.grad(lambda w, loss=loss: loss(w, x))(weight)
        assert grad.sharding.spec == PartitionSpec(None, "model")
        np.testing.assert_allclose(grad, expected, atol=1e-6)
        np.testing.assert_allclose(jax.grad(loss)(weight, x), expected, atol=1e-6)
    rows = jax.vmap(lambda row: (flow.from_jax(row) @ weight).jax())(a)
    np.testing.assert_allclose(rows, np.asarray(a) @ np.asarray(w), atol=1e-5)
