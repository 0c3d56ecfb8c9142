"""Every row of pointwise primitives, by brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sbpjax._core.programs.primitives import NONLINEAR
from sbpjax._core.programs.rules import strategies_of
from sbpjax.sbp.algebra import P
from tests.api.primitives import primitives
from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(1)
_SHAPE = (4, 5)


def _x(dtype=np.float32, shape=_SHAPE):
    if np.dtype(dtype).kind in "iu":
        return _RNG.integers(1, 9, shape).astype(dtype)
    if dtype is bool:
        return _RNG.integers(0, 2, shape).astype(bool)
    return _RNG.uniform(0.1, 0.9, shape).astype(dtype)


# Operands of primitives that do not take one or two float arrays.
_SPECIAL = {
    "and": (_x(bool), _x(bool)),
    "clamp": (np.float32(0.2), _x(), np.float32(0.7)),
    "complex": (_x(), _x()),
    "conj": (_x(np.complex64),),
    "imag": (_x(np.complex64),),
    "real": (_x(np.complex64),),
    "clz": (_x(np.int32),),
    "mulhi": (_x(np.uint32), _x(np.uint32)),
    "not": (_x(bool),),
    "or": (_x(bool), _x(bool)),
    "population_count": (_x(np.uint8),),
    # Series and continued fractions take seconds to compile: one dim is enough for them.
    "igamma": (_x(shape=(5,)), _x(shape=(5,))),
    "igamma_grad_a": (_x(shape=(5,)), _x(shape=(5,))),
    "igammac": (_x(shape=(5,)), _x(shape=(5,))),
    "regularized_incomplete_beta": (_x(shape=(5,)), _x(shape=(5,)), _x(shape=(5,))),
    "random_gamma_grad": (_x(), _x()),
    "select_n": (_x(bool), _x(), _x()),
    "shift_left": (_x(np.int32), _x(np.int32)),
    "shift_right_arithmetic": (_x(np.int32), _x(np.int32)),
    "polynomial": (_x(), _x(), _x()),
    "shift_right_logical": (_x(np.int32), _x(np.int32)),
    "xor": (_x(np.int16), _x(np.int16)),
}
_BINARY = (
    "add add_any atan2 div eq eq_to ge gt igamma igamma_grad_a igammac le le_to lt lt_to max min mul ne nextafter "
    "polygamma pow rem sub zeta"
).split()
_ACCURATE = "cbrt cos exp exp2 expm1 log log1p log2 logistic rsqrt sin sqrt tan tanh".split()
_PARAMS = {
    "conj": {"input_dtype": np.dtype(np.complex64)},
    "integer_pow": {"y": 3},
    "name": {"name": "x"},
    "reduce_precision": {"exponent_bits": 5, "mantissa_bits": 4},
    "round": {"rounding_method": lax.RoundingMethod.TO_NEAREST_EVEN},
    **{n: {"accuracy": None} for n in _ACCURATE},
}


@functools.cache
def _cases():
    found = []
    every = primitives()
    names = [
        n
        for n in (
            *sorted(NONLINEAR),
            "neg",
            "real",
            "imag",
            "conj",
            "copy",
            "name",
            "add",
            "sub",
            "add_any",
            "mul",
            "div",
            "select_n",
        )
        if n in every
    ]
    assert len(names) > 65
    for name in names:
        operands = _SPECIAL.get(name) or ((_x(), _x()) if name in _BINARY else (_x(),))
        function = functools.partial(every[name].bind, **_PARAMS.get(name, {}))
        found += equations(name, function, *operands, only=(name,))
    return found


@functools.cache
def _casts():
    found = []
    for before, after in (
        (np.float32, np.int32),
        (np.float32, jnp.bfloat16),
        (np.int32, np.float32),
        (bool, np.int32),
        (np.float32, np.float32),
        (np.complex64, np.complex128),
        (np.int64, np.int8),
    ):
        found += equations(
            f"{before.__name__} to {after.__name__}", lambda x, t=after: lax.convert_element_type(x, t), _x(before)
        )
    for dtype in (np.int32, np.uint8, np.int64, np.uint64):
        info = np.iinfo(dtype)
        large = _RNG.integers(info.min, info.max, _SHAPE, dtype, endpoint=True)
        found += equations(f"mulhi of {dtype.__name__}", lax.mulhi, large, large[::-1].copy())
    found += equations("bits", lambda x: lax.bitcast_convert_type(x, np.int32), _x())
    found += equations("bytes", lambda x: lax.bitcast_convert_type(x, np.int8), _x())
    found += equations("integers", lambda x, y: (x + y, x - y, x * y, x // 3), _x(np.int32), _x(np.int32))
    found += equations("bool select", lambda c, x, y: lax.select_n(c, x, y), _x(bool), _x(bool), _x(bool))
    found += equations("scalar condition", lambda c, x, y: lax.select_n(c, x, y), np.array(True), _x(), _x())
    found += equations(
        "integer select",
        lambda c, x, y, z: lax.select_n(c, x, y, z),
        _RNG.integers(0, 3, _SHAPE).astype(np.int32),
        _x(),
        _x(),
        _x(),
    )
    found += equations("clamp by arrays", lax.clamp, _x(), _x() + 0.2, _x() + 1)
    found += equations("barrier", lambda *a: lax.optimization_barrier(a), _x(), _x(np.int32, (4,)), _x(bool, (3, 5)))
    found += equations(
        "barrier of keys", lambda *a: lax.optimization_barrier(a), _x(), jax.random.split(jax.random.key(0), 5)
    )
    found += equations("empty", lambda x, y: x * y + x, _x(shape=(0, 4)), _x(shape=(0, 4)))
    return found


@pytest.mark.parametrize("mesh", MESHES)
def test_pointwise(mesh):
    assert check(_cases(), mesh) > 180


@pytest.mark.parametrize("mesh", MESHES)
def test_casts_and_selects(mesh):
    assert check(_casts(), mesh) > 50


def test_rounding_is_not_linear():
    def codes(before, after):
        eqn = jax.make_jaxpr(lambda x: x.astype(after))(jnp.zeros(8, before)).eqns[0]
        return {s.ins for s in strategies_of(eqn, 4)}

    assert (P,) in codes("bfloat16", "float32") and (P,) in codes("float16", "float64")
    assert (P,) not in codes("float32", "bfloat16") and (P,) not in codes("float32", "int32")
    assert (P,) not in codes("float16", "bfloat16") and (P,) not in codes("bfloat16", "float16")
