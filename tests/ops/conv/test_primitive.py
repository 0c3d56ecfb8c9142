"""Convolutions in groups, of one pixel and of few: values and derivatives in both forms, batches, dtypes, work."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sbpjax._core.ops.conv import primitive as conv_primitive
from sbpjax._core.ops.conv import products as conv_products
from sbpjax._core.ops.conv.conv import conv
from sbpjax._core.planner.prices.cost import flops

RNG = np.random.default_rng(0)
# dims, image's channels and size, outputs, groups, kernel, stride, padding, dilation
CASES = {
    "one dim": (1, 4, 9, 4, 4, 3, 1, 1, 1),
    "depthwise, strided": (2, 4, 9, 4, 4, 3, 2, 1, 1),
    "two filters a channel, dilated": (2, 4, 9, 8, 4, 3, 2, 0, 2),
    "even kernel, more stride": (2, 4, 9, 4, 4, 2, 3, 2, 1),
    "three dims": (3, 4, 5, 4, 2, 3, 2, 1, 1),
    "many channels a group": (2, 64, 7, 32, 2, 3, 2, 1, 2),
    "large kernel": (2, 2, 13, 2, 2, 12, 1, 6, 1),
    "few pixels of groups, strided": (2, 12, 9, 18, 3, 3, 2, 1, 1),
    "few pixels of groups, one dim": (1, 32, 9, 24, 2, 5, 1, 2, 2),
    "few pixels": (2, 4, 4, 24, 1, 3, 1, 1, 1),
    "few pixels, one dim, strided": (1, 3, 9, 12, 1, 3, 3, 2, 2),
    "few pixels, three dims": (3, 3, 4, 50, 1, 2, 2, 1, 2),
    "one pixel": (2, 4, 5, 8, 1, 1, 1, 0, 1),
    "one pixel, large image": (1, 3, 40, 5, 1, 1, 1, 0, 1),
    "one pixel, strided": (3, 4, 5, 8, 1, 1, 2, 0, 1),
    "one pixel of groups": (2, 8, 6, 8, 2, 1, 2, 0, 1),
}


def both(case, dtype=np.float64):
    """Return ours, XLA's own operation, and an image and kernels."""
    n, c, size, o, groups, k, stride, padding, dilation = CASES[case]
    x, w = RNG.standard_normal((3, c, *(size,) * n)), RNG.standard_normal((o, c // groups, *(k,) * n))
    ours = functools.partial(conv, stride=stride, padding=padding, dilation=dilation, groups=groups)
    space = "DHW"[-n:]

    def whole(x, w):
        return lax.conv_general_dilated(
            x,
            w,
            (stride,) * n,
            [(padding, padding)] * n,
            rhs_dilation=(dilation,) * n,
            dimension_numbers=("NC" + space, "OI" + space, "NC" + space),
            feature_group_count=groups,
        )

    return ours, whole, jnp.asarray(x, dtype), jnp.asarray(w, dtype)


def cubes(function):
    return lambda x, w: (function(x, w) ** 3).sum()


def close(found, wanted, **tolerances):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, **{"rtol": 1e-9, "atol": 1e-9, **tolerances})


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("form", ["cpu", "others"])
def test_values_and_derivatives(case, form, monkeypatch):
    if form == "others":
        monkeypatch.setattr(conv_primitive, "_on_cpu", conv_primitive._by_xla)
    ours, whole, x, w = both(case)
    operands = {e.primitive.name for e in jax.make_jaxpr(ours)(x, w).eqns}
    assert "convolution" in operands and "conv_general_dilated" not in operands
    # Programs of another test have the same equations: these are lowered anew.
    functions = [lambda f: f, lambda f: jax.grad(cubes(f), (0, 1))]
    for of in functions:
        close(jax.jit(of(ours))(x, w), of(whole)(x, w))
    tangents = (jnp.asarray(RNG.standard_normal(x.shape)), jnp.asarray(RNG.standard_normal(w.shape)))

    def second(f):
        return jax.jit(lambda x, w: jax.jvp(jax.grad(cubes(f), (0, 1)), (x, w), tangents)[1])(x, w)

    close(second(ours), second(whole))


@pytest.mark.parametrize("bounds", [(1 << 18, 0, 1 << 21), (0, 0, 0)])
@pytest.mark.parametrize("case", ["many channels a group", "few pixels of groups, one dim"])
def test_groups_one_after_the_other(case, bounds, monkeypatch):
    for name, bound in zip(("_GROUP", "_AT_ONCE", "_ADDED"), bounds, strict=True):
        monkeypatch.setattr(conv_products, name, bound)
    ours, whole, x, w = both(case)
    for of in (lambda f: f, lambda f: jax.grad(cubes(f), (0, 1))):
        close(jax.jit(of(ours))(x, w), of(whole)(x, w))


def test_what_is_dense_is_ours_where_its_pixels_are_few():
    ours, _, x, w = both("few pixels")
    many = [
        jnp.zeros((8, *x.shape[1:])),
        jax.ShapeDtypeStruct((jax.export.symbolic_shape("n")[0], *x.shape[1:]), x.dtype),
    ]
    for images, name in ((x, "convolution"), *((more, "conv_general_dilated") for more in many)):
        assert name in {e.primitive.name for e in jax.jit(ours).trace(images, w).jaxpr.eqns}


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("case", ["few pixels", "few pixels, one dim, strided", "few pixels, three dims"])
def test_accelerators_get_the_same_dense_convolutions(case, platform):
    ours, whole, x, w = both(case, np.float32)

    def operations(f):
        gradients = jax.jit(jax.value_and_grad(cubes(f), (0, 1)))
        lines = gradients.trace(x, w).lower(lowering_platforms=(platform,)).as_text().splitlines()
        return sorted(re.sub(r"%\w+", "", line) for line in lines if "stablehlo.convolution(" in line)

    assert len(operations(ours)) == 3 and operations(ours) == operations(whole)


@pytest.mark.parametrize(
    "case",
    [
        "depthwise, strided",
        "many channels a group",
        "few pixels",
        "few pixels of groups, strided",
        "one pixel, strided",
    ],
)
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_batches(case, axes):
    ours, whole, x, w = both(case)
    given = [jnp.stack([a, 2 * a]) if axis == 0 else a for a, axis in zip((x, w), axes, strict=True)]
    for of in (lambda f: f, lambda f: jax.grad(cubes(f), (0, 1))):
        close(jax.vmap(of(ours), axes)(*given), jax.vmap(of(whole), axes)(*given))


def test_sums_of_16_bits_are_in_32():
    ours, whole, x, w = both("many channels a group", np.float32)
    found = ours(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16))
    assert found.dtype == jnp.bfloat16
    rounded = whole(*(a.astype(jnp.bfloat16).astype(np.float32) for a in (x, w)))
    close(found.astype(np.float32), rounded.astype(jnp.bfloat16).astype(np.float32), rtol=2**-7)


def test_a_program_still_says_which_convolution_it_is():
    ours, _, x, w = both("depthwise, strided")
    text = jax.jit(ours).lower(x, w).as_text()
    assert f'stablehlo.composite "{conv_primitive.COMPOSITE}"' in text and "strides = dense<2>" in text


def test_no_images_and_a_free_batch():
    ours, whole, x, w = both("depthwise, strided")
    assert ours(x[:0], w).shape == whole(x[:0], w).shape
    shapes = jax.export.symbolic_shape("n, 4, 9, 9")
    exported = jax.export.export(jax.jit(ours))(jax.ShapeDtypeStruct(shapes, x.dtype), w)
    close(exported.call(x, w), whole(x, w))


def test_work():
    ours, whole, x, w = both("depthwise, strided")
    work = [[flops(e) for e in jax.make_jaxpr(jax.grad(cubes(f), (0, 1)))(x, w).eqns] for f in (ours, whole)]
    ours_work = [n for n in work[0] if n]
    assert len(ours_work) == 3 and len(set(ours_work)) == 1 and ours_work[0] == next(n for n in work[1] if n)
