"""Arguments taken apart: names of leaves, constants, NNX objects."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from flax.training.train_state import TrainState

import sbpjax
from sbpjax._core.inspect.jax_steps.arguments import Signature, flatten
from sbpjax.errors import OpValueError

from .cases import make_mesh

TOLERANCE = 1e-6


class Model(nnx.Module):
    """A model with everything that NNX changes in place."""

    def __init__(self, rngs):
        self.first = nnx.Linear(8, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.layers = nnx.List([nnx.Linear(16, 16, rngs=rngs) for _ in range(2)])

    def __call__(self, x):
        x = self.dropout(jax.nn.relu(self.norm(self.first(x))))
        for layer in self.layers:
            x = layer(x)
        return x


def train_step(model, optimizer, metrics, x, y):
    """SGD, as the guides of Flax write it."""
    loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
    metrics.update(loss=loss)
    optimizer.update(model, grads)
    return loss


def make():
    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(1e-2, momentum=0.9), wrt=nnx.Param)
    return model, optimizer, nnx.MultiMetric(loss=nnx.metrics.Average("loss"))


def batch():
    rng = np.random.default_rng(0)
    return tuple(jnp.asarray(rng.standard_normal((32, n)).astype(np.float32)) for n in (8, 16))


@pytest.mark.parametrize("wrap", [lambda f: f, nnx.jit])
def test_nnx_objects_are_updated_as_by_nnx_jit(wrap):
    step = wrap(train_step)
    found = sbpjax.auto.plan(step, *nnx.eval_shape(make), *batch(), mesh=make_mesh(8)).jit(step)
    ours, theirs = make(), make()
    for _ in range(3):
        np.testing.assert_allclose(found(*ours, *batch()), nnx.jit(train_step)(*theirs, *batch()), rtol=TOLERANCE)
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(jax.tree.leaves(nnx.state(mine)), jax.tree.leaves(nnx.state(other)), strict=True):
            a, b = (jax.random.key_data(v) if jnp.issubdtype(v.dtype, jax.dtypes.prng_key) else v for v in (a, b))
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=TOLERANCE)


def test_names_and_kinds_of_nnx_state():
    found = sbpjax.auto.plan(train_step, *nnx.eval_shape(make), *batch(), mesh=make_mesh(8))
    kinds = {x.name: x.kind for x in found._problem.inputs}
    assert kinds["model.layers.0.kernel"] == "parameter"
    assert kinds["model.norm.mean"] == "buffer"
    assert kinds["optimizer.opt_state.0.trace.layers.0.kernel"] == "state"
    assert kinds["model.dropout.rngs.key"] == kinds["metrics.loss.total"] == "number"
    assert "model.layers.*.kernel" in str(found.report)
    assert isinstance(found.in_shardings[0], nnx.State)


def test_put_moves_nnx_objects_in_place():
    found = sbpjax.auto.plan(train_step, *nnx.eval_shape(make), *batch(), mesh=make_mesh(8),
                             pins={"model.first.kernel": "S1"})  # fmt: skip
    args = (*make(), *batch())
    placed = found.put(*args)
    assert placed[0] is args[0]
    assert args[0].first.kernel[...].sharding == found.in_shardings[0]["first"]["kernel"].get_value()
    found.jit()(*placed)


def test_nnx_state_that_is_split_outside():
    graph, state = nnx.split(Model(nnx.Rngs(0)))

    def step(state, x):
        model = nnx.merge(graph, state)
        out = model(x)
        return out.sum(), nnx.state(model)

    x, _ = batch()
    found = sbpjax.auto.plan(step, state, x, mesh=make_mesh(8)).jit(donate=False)
    loss, new = found(state, x)
    wanted, other = jax.jit(step)(state, x)
    np.testing.assert_allclose(loss, wanted, rtol=1e-5)
    np.testing.assert_allclose(new["norm"]["mean"][...], other["norm"]["mean"][...], rtol=1e-5, atol=1e-6)


def test_a_linen_train_state():
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            return linen.Dense(16)(linen.relu(linen.Dense(32)(x)))

    net, (x, y) = Net(), batch()
    state = TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), x), tx=optax.adam(1e-2))

    def step(state, x, y):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn(p, x) - y) ** 2))(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss}

    found = sbpjax.auto.plan(step, state, x, y, mesh=make_mesh(2, 4))
    assert "state.params.params.Dense_0.kernel" in found.donated
    new, metrics = found.jit(donate=False)(state, x, y)
    other, wanted = jax.jit(step)(state, x, y)
    np.testing.assert_allclose(metrics["loss"], wanted["loss"], rtol=TOLERANCE)
    new, metrics = found.jit()(new, x, y)
    np.testing.assert_allclose(metrics["loss"], jax.jit(step)(other, x, y)[1]["loss"], rtol=TOLERANCE)


def test_a_step_that_changes_the_state_of_nnx_objects_in_form_is_refused():
    def step(model, x):
        model.extra = nnx.Param(jnp.ones(3, jnp.float32))
        return model(x)

    with pytest.raises(OpValueError, match="the state of its NNX arguments"):
        sbpjax.auto.plan(step, Model(nnx.Rngs(0)), batch()[0], mesh=make_mesh(8))


def test_leaves_and_constants():
    arrays, constants, _ = flatten({"a": 1, "b": True, "c": "relu", "d": np.float32(2), "e": [jnp.ones(2), None, len]})
    assert len(arrays) == 3 and list(constants.values()) == [True, "relu", len]


def test_names_follow_parameters_and_keys():
    def step(params, *rest):
        return params

    found = Signature(step, [{"a.b": [jnp.ones(2)]}, jnp.ones(3), (jnp.ones(1),)])
    assert found.names == ["params.a.b.0", "rest0", "rest1.0"]
