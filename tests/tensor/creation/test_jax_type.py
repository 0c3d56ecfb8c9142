"""Tensors as arguments of JAX's functions and libraries: values, shardings, programs, and the two tapes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import sbpjax as flow
from sbpjax import nn, sbp
from sbpjax.errors import AbstractError, AutogradError, SbpError


@pytest.fixture(params=[AxisType.Auto, AxisType.Explicit], ids=["auto", "explicit"])
def mesh(request):
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(request.param,) * 2)


@pytest.fixture
def local():
    return flow.arange(6.0) + 1


def split_rows(mesh):
    return flow.arange(64.0).reshape(8, 8).to_global(flow.placement(mesh), {"data": sbp.split(0)})


WORK = {
    "jnp.sum": jnp.sum,
    "jnp.zeros_like": jnp.zeros_like,
    "jnp.asarray": jnp.asarray,
    "jnp.stack": lambda x: jnp.stack([x, x]),
    "jnp.where": lambda x: jnp.where(x > 2, x, 0.0),
    "jnp.take": lambda x: jnp.take(jnp.arange(99.0), lax.convert_element_type(x, "int32")),
    "lax.exp": lax.exp,
    "array + x": lambda x: jnp.ones(x.shape, "float32") + x,
    "x + array": lambda x: x + jnp.ones(x.shape, "float32"),
    "jit": jax.jit(lambda a: lax.exp(a) if isinstance(a, jax.Array) else None),
    "grad": jax.grad(lambda a: (a * a).sum()),
    "value_and_grad": jax.value_and_grad(lambda a: jnp.sin(a).sum()),
    "jvp": lambda x: jax.jvp(jnp.sin, (x,), (x,)),
    "vjp": lambda x: jax.vjp(jnp.sin, x)[1](x),
    "linearize": lambda x: jax.linearize(jnp.sin, x)[1](x),
    "vmap": jax.vmap(lambda a: a * 2),
    "scan": lambda x: lax.scan(lambda c, _: (c * 2, c.sum()), x, None, length=3),
    "scan over rows": lambda x: lax.scan(lambda c, row: (c + row, row * 2), jnp.zeros((), "float32"), x),
    "while_loop": lambda x: lax.while_loop(lambda c: c[0] < 9, lambda c: c + 1, x),
    "cond": lambda x: lax.cond(True, lambda a: a + 1, lambda a: a, x),
    "checkpoint": jax.grad(jax.checkpoint(lambda a: jnp.sin(a).sum())),
    "closed over": lambda x: jax.jit(lambda a: jnp.add(a, x))(x),
    "device_get": jax.device_get,
    "eval_shape": lambda x: jax.eval_shape(lambda a: a + 1, x),
    "ahead of time": lambda x: jax.jit(jnp.sin).lower(x).compile()(x),
}


@pytest.mark.parametrize("name", WORK)
def test_result_is_that_of_the_array(local, name):
    found, expected = WORK[name](local), WORK[name](local.jax())
    pairs = list(zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True))
    assert pairs
    for a, b in pairs:
        assert type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        if not isinstance(b, jax.ShapeDtypeStruct):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("work", [jnp.exp, jax.grad(lambda a: (a * a).sum())], ids=["exp", "grad"])
def test_jit_keeps_the_layout_of_a_global_tensor(mesh, work):
    x = split_rows(mesh)
    assert x.sharding == x.jax().sharding == NamedSharding(mesh, PartitionSpec("data"))
    found, expected = jax.jit(work)(x), jax.jit(work)(x.jax())
    assert found.sharding == expected.sharding and found.sharding.is_equivalent_to(x.sharding, 2)
    assert flow.from_jax(found).sbp == x.sbp and flow.from_jax(found).placement.mesh == mesh
    np.testing.assert_array_equal(found, expected)


def add_one(a):
    return a + 1


ROWS = PartitionSpec("data")
UNDER_A_MESH = {
    "jit": jax.jit(add_one),
    "shard_map": lambda x: jax.shard_map(add_one, in_specs=ROWS, out_specs=ROWS)(x),
    "value_and_grad": jax.value_and_grad(lambda a: (a * a).sum()),
}


@pytest.mark.parametrize("name", UNDER_A_MESH)
def test_ambient_mesh_takes_tensors(mesh, name):
    x, work = split_rows(mesh), UNDER_A_MESH[name]
    with jax.set_mesh(mesh):
        found, expected = jax.tree.leaves(work(x)), jax.tree.leaves(work(x.jax()))
        for a, b in zip(found, expected, strict=True):
            assert a.sharding == b.sharding
            np.testing.assert_array_equal(a, b)


def test_program_is_traced_once_per_type():
    traces = []
    f = jax.jit(lambda a: (traces.append(a), a * 2)[1])
    p = flow.placement("cpu", [0, 1, 2, 3])
    values = [
        *(flow.ones(3), flow.ones(4), flow.ones(3, dtype=flow.int32), flow.ones(3, device="cpu:2")),
        *(flow.ones(8, 8, placement=p, sbp=s) for s in ("S0", "S1", "B")),
    ]
    for _ in range(2):
        for x in values:
            found, expected = f(x), f(x.jax())
            assert (found.sharding, found.dtype) == (expected.sharding, expected.dtype)
            np.testing.assert_array_equal(found, expected)
    assert len(traces) == 4  # shapes and dtypes


def test_partial_sum_is_an_unreduced_argument(mesh):
    x = split_rows(mesh).to_global(sbp=[sbp.split(0), sbp.partial_sum])
    found = flow.from_jax(jax.jit(lambda a: a + a)(x))
    assert found.sbp == x.sbp
    np.testing.assert_array_equal(found.numpy(), 2 * x.numpy())


def test_tree_leaves_stay_tensors(local):
    found = jax.tree.map(lambda x: x + 1, {"a": local})
    assert isinstance(found["a"], flow.Tensor) and jax.tree.leaves([local]) == [local]


def test_tape_of_sbpjax_is_not_cut(local):
    weight = nn.Parameter(local)
    for call in (jnp.sum, jax.jit(jnp.sum), jax.grad(jnp.sum), lambda x: jnp.ones(6) * x, lax.exp):
        for x in (weight, weight * 2):
            with pytest.raises(AutogradError, match=r"(?s)requires grad.*not on the tape.*fix: .*wrap_jax.*x.detach"):
                call(x)
    with flow.no_grad():
        assert float(jax.jit(jnp.sum)(weight)) == 21
    np.testing.assert_array_equal(jax.grad(lambda a: (a * a).sum())(weight.detach()), 2 * np.arange(1.0, 7.0))


def test_both_tapes_meet_in_wrap_jax(local):
    """JAX's function is on the tape by `wrap_jax`, and a module is JAX's by `to_pure`: one gradient."""
    x = local.requires_grad_()
    flow.wrap_jax(lambda a: jnp.sin(a).sum())(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), jax.grad(lambda a: jnp.sin(a).sum())(x.detach()), rtol=1e-6)


def test_tensor_without_an_array_is_refused():
    p = flow.placement("cpu", [0, 1])
    with pytest.raises(SbpError, match=r"(?s)no padding.*fix: .*to_global"):
        jax.jit(jnp.sum)(flow.ones(3, placement=p, sbp=sbp.split(0)))
    with pytest.raises(AbstractError, match=r"(?s)no elements.*fix: "):
        jax.jit(jnp.sum)(flow.ones(3, device="meta"))
    assert jax.eval_shape(jnp.sum, flow.ones(3, device="meta")).shape == ()


def test_captured_tensor_is_an_input_of_a_compiled_function(local):
    f = flow.compile(lambda x: x + flow.from_jax(jnp.exp(local)))
    first = f(local).numpy()
    local.mul_(2.0)
    np.testing.assert_allclose(f(local).numpy(), local.numpy() + np.exp(local.numpy()), rtol=1e-6)
    assert (first != f(local).numpy()).all()


def test_optax_takes_tensors(mesh):
    w, g = split_rows(mesh), split_rows(mesh)
    adam = optax.adam(1e-2)

    @jax.jit
    def step(params, state, grads):
        updates, state = adam.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    with jax.set_mesh(mesh):
        params, state = {"w": w}, adam.init({"w": w})
        new, state = step(params, state, {"w": g})
        expected, _ = step({"w": w.jax()}, adam.init({"w": w.jax()}), {"w": g.jax()})
    np.testing.assert_array_equal(new["w"], expected["w"])
    assert flow.from_jax(new["w"]).sbp == w.sbp


def test_orbax_takes_arrays_of_tensors(tmp_path):
    x = split_rows(jax.make_mesh((2, 4), ("data", "model")))
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "a", {"x": x.jax()})
        checkpointer.wait_until_finished()
        found = checkpointer.restore(tmp_path / "a", {"x": x.jax()})["x"]
    assert flow.from_jax(found).sbp == x.sbp
    np.testing.assert_array_equal(found, x.numpy())
