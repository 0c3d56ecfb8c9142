"""Primitives without rows run whole, whatever the layout: references, callbacks, `shard_map`, other keys, sparse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback, sparse
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as Spec

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import global_ops
from sbpjax.sbp.placement import placement

TOLERANCE = 1e-5
_LAYOUTS = [([0, 1, 2, 3], "S0"), ([0, 1, 2, 3], "P"), ([[0, 1], [2, 3]], "S0,S1")]


def _mesh(*shape):
    return Mesh(np.array(jax.devices("cpu")[: np.prod(shape)]).reshape(shape), ("y", "z")[-len(shape) :])


def references(x):
    box = jax.new_ref(jnp.zeros_like(x))
    box[...] = x * 2
    box[0] = box[0] + 1
    return box[...]


def reference_in_a_loop(x):
    total = jax.new_ref(jnp.zeros(x.shape[1], x.dtype))

    def step(carry, row):
        total[...] += row
        return carry, None

    jax.lax.scan(step, 0.0, x)
    return total[...]


def callback(x):
    return jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def effectful_callback(x):
    return io_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def mapped_over_one_axis(x):
    body = lambda a: a * 2 + jax.lax.psum(a.sum(), "z")  # noqa: E731
    return jax.shard_map(body, mesh=_mesh(4), in_specs=Spec("z"), out_specs=Spec("z"))(x)


def mapped_over_two_axes(x):
    def body(a):
        swapped = jax.lax.ppermute(a, "z", [(0, 1), (1, 0)])
        return a * 2 + swapped + jax.lax.psum(a.sum(), ("y", "z")) + jax.lax.axis_index("y")

    return jax.shard_map(body, mesh=_mesh(2, 2), in_specs=Spec(("y", "z")), out_specs=Spec(("y", "z")))(x)


def mapped_unchecked(x):
    def body(a, b):
        gathered = jax.lax.all_gather(a, "z", tiled=True) @ b.T
        part = jax.lax.psum_scatter(jax.lax.psum(a, "y"), "z", tiled=True).sum()
        return gathered + jax.lax.psum(part, "z")  # the same along z, as out_specs say: nobody checks it

    specs = (Spec("z", "y"), Spec(None, "y"))
    return jax.shard_map(body, mesh=_mesh(2, 2), in_specs=specs, out_specs=Spec("y"), check_vma=False)(x, x)


def other_keys(x):
    return x + jax.random.uniform(jax.random.key(0, impl="rbg"), x.shape, x.dtype)


def gamma(x):
    return jax.random.gamma(jax.random.key(0), jnp.abs(x), dtype=x.dtype)


def sparse_product(x):
    return sparse.BCOO.fromdense(x, nse=x.size) @ jnp.ones(x.shape[1], x.dtype)


def linear_solve(x):
    return jnp.linalg.solve(x[:4] @ x[:4].T + jnp.eye(4, dtype=x.dtype), x[4:])


def general_pooling_gradient(x):
    pool = lambda y: jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "VALID")  # noqa: E731
    return jax.vjp(pool, x)[1](jnp.ones((4, 2), x.dtype))[0]


def empty_operands(x):
    return jnp.zeros((3, 0), x.dtype) @ x[:0] + 1


FUNCTIONS = [
    references,
    reference_in_a_loop,
    callback,
    effectful_callback,
    mapped_over_one_axis,
    mapped_over_two_axes,
    mapped_unchecked,
    other_keys,
    gamma,
    sparse_product,
    linear_solve,
    general_pooling_gradient,
    empty_operands,
]


@pytest.mark.parametrize("ranks, sbp", _LAYOUTS, ids=[s for _, s in _LAYOUTS])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_value(function, ranks, sbp):
    x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    want = np.asarray(function(jnp.asarray(x)))
    array, layout = conversions.from_logical(x, placement("cpu", ranks), sbp)
    (result,), (found,) = global_ops.execute(function, (), [array], [layout])
    got = np.asarray(conversions.to_logical(result, found))
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("hierarchy", [[0, 1, 2, 3], [[0, 1], [2, 3]]], ids=["1-D", "2-D"])
def test_products_of_empty_tensors(hierarchy):
    place = placement("cpu", hierarchy)
    sbp = ("S0",) * np.ndim(hierarchy)
    x, layout_x = conversions.from_logical(np.zeros((4, 0), np.float32), place, ",".join(sbp))
    y, layout_y = conversions.from_logical(np.zeros((0, 4), np.float32), place, ",".join(sbp))
    (result,), (layout,) = global_ops.execute(jnp.matmul, (), [x, y], [layout_x, layout_y])
    np.testing.assert_array_equal(conversions.to_logical(result, layout), np.zeros((4, 4)))
