"""Every row of convolutions, pooling and cumulative functions, by brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(5)


def _x(*shape, dtype=np.float32):
    return _RNG.integers(-5, 6, shape).astype(dtype)


def _with_gradients(label, function, *args):
    """Return the equations of a function and of its gradients."""

    def both(*args):
        out, back = jax.vjp(function, *args)
        return out, back(jnp.ones_like(out))

    return equations(label, both, *args)


def _conv(x, w, groups=1, stride=1, padding="SAME", batch_groups=1, layout=("NCHW", "OIHW", "NCHW")):
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        padding,
        dimension_numbers=layout,
        feature_group_count=groups,
        batch_group_count=batch_groups,
    )


@functools.cache
def _convolutions():
    found = []
    found += _with_gradients("plain", _conv, _x(4, 3, 5, 4), _x(5, 3, 3, 3))
    found += _with_gradients("strided", functools.partial(_conv, stride=2), _x(5, 4, 6, 6), _x(4, 4, 3, 3))
    channels_last = functools.partial(_conv, layout=("NHWC", "HWIO", "NHWC"))
    found += _with_gradients("channels last", channels_last, _x(4, 5, 4, 3), _x(3, 3, 3, 5))
    found += _with_gradients("one by one", functools.partial(_conv, padding="VALID"), _x(2, 3, 5, 4), _x(4, 3, 1, 1))
    found += _with_gradients("4 groups", functools.partial(_conv, groups=4), _x(4, 8, 3, 3), _x(8, 2, 3, 3))
    found += _with_gradients("2 groups", functools.partial(_conv, groups=2), _x(3, 8, 3, 3), _x(4, 4, 3, 3))
    found += _with_gradients("depthwise", functools.partial(_conv, groups=8), _x(2, 8, 3, 3), _x(16, 1, 3, 3))
    found += _with_gradients("3 groups", functools.partial(_conv, groups=3), _x(2, 6, 3, 3), _x(3, 2, 3, 3))
    found += equations("batch groups", functools.partial(_conv, batch_groups=4), _x(8, 3, 3, 3), _x(4, 3, 2, 2))
    transposed = functools.partial(
        lax.conv_transpose, strides=(2,), padding="SAME", dimension_numbers=("NHC", "HIO", "NHC")
    )
    found += _with_gradients("transposed", transposed, _x(4, 5, 3), _x(3, 3, 2))
    found += equations("bf16", _conv, _x(4, 5, 3, 3).astype(jnp.bfloat16), _x(2, 5, 3, 3).astype(jnp.bfloat16))
    return [f for f in found if f.eqn.primitive.name == "conv_general_dilated"]


@functools.cache
def _windows():
    found = []

    def pool(init, function, x):
        return lax.reduce_window(x, init, function, (1, 1, 2, 2), (1, 1, 2, 1), "SAME")

    x = _RNG.permutation(4 * 3 * 5 * 4).reshape(4, 3, 5, 4).astype(np.float32)  # no ties: any order of ranks agrees
    for label, init, function in (("sum", 0.0, lax.add), ("max", -np.inf, lax.max), ("min", np.inf, lax.min)):
        found += _with_gradients(label, functools.partial(pool, np.float32(init), function), x)
    found += equations("product", functools.partial(pool, np.float32(1), lax.mul), _x(4, 3, 5, 4))

    def tangent(x, t):
        return jax.jvp(functools.partial(pool, np.float32(-np.inf), lax.max), (x,), (t,))

    found += equations("tangent of max", tangent, x, _x(4, 3, 5, 4))
    for function in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp):
        found += equations(function.__name__, functools.partial(function, axis=1, reverse=True), _x(5, 4, 3))
    found += equations("cumsum of ints", functools.partial(lax.cumsum, axis=0), _x(5, 4, dtype=np.int32))
    names = ("reduce_window", "select_and", "cum")
    return [f for f in found if f.eqn.primitive.name.startswith(names)]


@pytest.mark.parametrize("mesh", MESHES)
def test_convolution(mesh):
    assert check(_convolutions(), mesh) > 150


@pytest.mark.parametrize("mesh", MESHES)
def test_windows(mesh):
    assert check(_windows(), mesh) > 50


def test_groups_are_never_cut_in_two():
    # 8 channels in 2 groups divide over 2 x 2 ranks, the groups do not.
    (found,) = equations("2 groups", functools.partial(_conv, groups=2), _x(3, 8, 3, 3), _x(4, 4, 3, 3))
    from sbpjax._core.programs.rules import jointly_legal, strategies_of

    (row,) = [r for r in strategies_of(found.eqn, 2, 0) if r.groups]
    assert jointly_legal(found.eqn, (row,), (2,))
    assert not jointly_legal(found.eqn, (row, row), (2, 2))
