"""16-bit values are stored as such: where barriers come, what they leave alone, and that numbers stay."""

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.jax_private import jaxpr_as_fun
from sbpjax._core.programs.bf16_barriers import add_bf16_barriers

BF16, F32 = jnp.bfloat16, jnp.float32


def made(function, *shapes, dtype=BF16, **options):
    """Return a program, and the same stored narrow."""
    closed = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(shape, dtype) for shape in shapes))
    return closed, add_bf16_barriers(closed, **options)


def names(closed):
    return [eqn.primitive.name for eqn in closed.jaxpr.eqns]


def run(closed, *arrays):
    return jax.jit(jaxpr_as_fun(closed))(*arrays)


def test_a_product_that_is_cast_is_stored_first():
    before, after = made(lambda x, w: jnp.tanh((x @ w).T.astype(F32)), (8, 4), (4, 16))
    place = names(before).index("dot_general") + 1
    assert names(after) == [*names(before)[:place], "optimization_barrier", *names(before)[place:]]
    x, w = (jnp.asarray(np.random.default_rng(i).normal(size=s), BF16) for i, s in enumerate(((8, 4), (4, 16))))
    # Op by op, as a compiler that sees both may leave out the rounding between them.
    np.testing.assert_array_equal(run(after, x, w)[0], jaxpr_as_fun(before)(x, w)[0])


def test_what_two_products_read_is_stored_once():
    def function(x, w):
        y = jnp.tanh(x)
        return y @ w, y.T @ x

    _, after = made(function, (8, 4), (4, 16))
    assert names(after).count("optimization_barrier") == 1
    held = next(eqn for eqn in after.jaxpr.eqns if eqn.primitive.name == "optimization_barrier")
    readers = [e.primitive.name for e in after.jaxpr.eqns if held.outvars[0] in e.invars]
    assert sorted(readers) == ["dot_general", "transpose"]


def test_what_stays():
    for function, dtype in (
        (lambda x, w: x @ w, BF16),  # nothing casts it
        (lambda x, w: jnp.tanh(x) @ w, BF16),  # one product reads it
        (lambda x, w: (x @ w).astype(jnp.float64), F32),  # wide
    ):
        before, after = made(function, (8, 4), (4, 16), dtype=dtype)
        assert after is before


def test_results_and_programs_within():
    def function(x, w):
        y = jax.jit(lambda x: (x @ w).astype(F32))(x)
        return y, x @ w

    _, after = made(function, (8, 4), (4, 16))
    assert "optimization_barrier" in str(after) and "optimization_barrier" not in names(after)
    x, w = (jnp.asarray(np.random.default_rng(i).normal(size=s), BF16) for i, s in enumerate(((8, 4), (4, 16))))
    cast, product = run(after, x, w)
    np.testing.assert_array_equal(cast, product.astype(F32))  # without the barrier XLA gives more bits than there are


def test_convolutions_of_one_device_write_16_bits():
    def function(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", preferred_element_type=F32)

    shapes = (2, 3, 8, 8), (4, 3, 3, 3)
    before, after = made(function, *shapes, convolutions=True)
    assert made(function, *shapes)[1].jaxpr.eqns[0].outvars[0].aval.dtype == F32
    assert names(after)[-3:] == ["conv_general_dilated", "optimization_barrier", "convert_element_type"]
    arrays = [jnp.asarray(np.random.default_rng(i).normal(size=s), BF16) for i, s in enumerate(shapes)]
    (wide,), (narrow,) = run(before, *arrays), run(after, *arrays)
    assert narrow.dtype == F32
    np.testing.assert_array_equal(narrow, wide.astype(BF16).astype(F32))
