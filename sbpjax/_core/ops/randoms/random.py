"""Random ops with an explicit key: equal key and logical shape give equal values under every layout.

Every function takes a typed JAX key (``jax.random.key(seed)``) or its raw form, ``uint32[2]``, as its first array
input and nothing from a hidden state. JAX's generator is counter-based (threefry), so element i of the logical tensor
depends on (key, i) alone: worked case, `rand(key, shape=(8,))` split over 4 ranks holds on rank 1 the elements 2 and
3 of the unsplit tensor.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail, one
from ..layers.activation import softmax
from ..promote import DEFAULT_FLOAT, INT64, broadcast_to, cast, category, compute_dtype, is_float, joint_shape


def _key(key):
    """Return a typed key; raw ``uint32[2]`` data is wrapped."""
    return key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key, impl="threefry2x32")


def _floats(dtype, op: str) -> np.dtype:
    if not is_float(dtype):
        fail(
            "type",
            f"{op}(dtype={np.dtype(dtype)})",
            "a dtype that is not floating",
            "the dtype is a float",
            "dtype=float32",
        )
    return np.dtype(dtype)


def _draw_rounded(sample, dtype):
    """Draw in the computing dtype and round: a bfloat16 draw is the float32 draw, rounded."""
    wide = compute_dtype(dtype)
    return cast(sample(wide), dtype)


def _both_parts(draw, key, dtype):
    """Return complex numbers whose parts are two draws."""
    real = np.dtype(np.float64 if np.dtype(dtype) == np.complex128 else np.float32)
    return lax.complex(*(draw(k, real) for k in jax.random.split(_key(key))))


def rand(key, /, shape, dtype=DEFAULT_FLOAT):
    """Return uniform floats in [0, 1); of complex numbers, each part is one."""
    if category(dtype) == 3:
        return _both_parts(lambda k, real: rand(k, shape=shape, dtype=real), key, dtype)
    return uniform(key, shape=shape, dtype=dtype)


def uniform(key, /, shape, low: float = 0.0, high: float = 1.0, dtype=DEFAULT_FLOAT):
    """Return uniform floats in [low, high)."""
    dtype = _floats(dtype, "uniform")
    if not low <= high:
        fail(
            "value",
            f"uniform({low}, {high})",
            f"shape {tuple(shape)}",
            "low is not above high",
            f"uniform({high}, {low})",
        )
    unit = jax.random.uniform(_key(key), tuple(shape), compute_dtype(dtype))
    if (low, high) != (0.0, 1.0):
        unit = lax.add(lax.mul(unit, np.asarray(high - low, unit.dtype)), np.asarray(low, unit.dtype))
    return _round_below(unit, high, dtype)


def _round_below(x, high: float, dtype):
    """Return x in ``dtype``, with values that rounding lifted to ``high`` put just below it."""
    x = cast(x, dtype)
    top = np.asarray(high, x.dtype)
    under = np.nextafter(top, np.asarray(-np.inf, x.dtype))
    return lax.select_n(lax.lt(x, top), broadcast_to(under, x.shape), x) if np.isfinite(top) else x


def randn(key, /, shape, dtype=DEFAULT_FLOAT):
    """Return floats of the standard normal distribution; complex numbers of variance 1."""
    if category(dtype) == 3:
        half = _both_parts(lambda k, real: randn(k, shape=shape, dtype=real), key, dtype)
        return half * np.asarray(math.sqrt(0.5), lax.real(half).dtype)
    dtype = _floats(dtype, "randn")
    return _draw_rounded(lambda wide: jax.random.normal(_key(key), tuple(shape), wide), dtype)


def normal(key, mean: Any = 0.0, std: Any = 1.0, /, shape=None, dtype=None):
    """Return normal floats; the slopes in ``mean`` and ``std`` are 0, as in torch.

    Args:
        key: the random key.
        mean: number or array.
        std: number or array, not negative.
        shape: the shape of the result; by default the broadcast shape of mean and std.
        dtype: the dtype of the result; by default that of mean and std.
    """
    mean, std = (lax.stop_gradient(v) if isinstance(v, jax.Array) else v for v in (mean, std))
    arrays = [v for v in (mean, std) if np.ndim(v) or isinstance(v, jax.Array)]
    if shape is None:
        shape = joint_shape(np.shape(mean), np.shape(std))
    if dtype is None:
        own = [v.dtype for v in arrays if not getattr(v, "weak_type", False)]  # numbers have the dtype of the other
        dtype = next((d for d in own if is_float(d)), DEFAULT_FLOAT)
    noise = randn(key, shape=shape, dtype=dtype)
    mean, std = (broadcast_to(cast(v, noise.dtype), noise.shape) for v in (mean, std))
    return lax.add(lax.mul(noise, std), mean)


def randint(key, low, high, shape, dtype=INT64):
    """Return integers in [low, high), all equally likely.

    Args:
        key: the random key.
        low: the least value, a number or a 0-d array: as an array it is an input of the program, which then serves
            all bounds.
        high: the values stay below; a number or a 0-d array.
        shape: the shape of the result.
        dtype: its dtype.
    """
    if isinstance(low, int) and isinstance(high, int):
        integer_bounds(low, high, shape)
    integers = np.dtype(dtype) if jnp.issubdtype(dtype, jnp.integer) else INT64
    return cast(jax.random.randint(_key(key), tuple(shape), low, high, integers), dtype)


def integer_bounds(low: int, high: int, shape) -> tuple[int, int]:
    """Return the bounds of integers in [low, high) if they are some, and 64-bit integers."""
    if not low < high:
        operation, seen = f"randint({low}, {high})", f"shape {tuple(shape)}"
        fail("value", operation, seen, "low is below high", f"randint({low}, {low + 1})")
    if low < -(2**63) or high > 2**63 - 1:
        rule = "bounds are integers of 64 bits, from -2^63 to 2^63 - 1"
        fail("value", "randint(low, high)", f"low {low:.6g}, high {high:.6g}", rule, f"randint(0, {2**63 - 1})")
    return low, high


def bernoulli(key, p, /):
    """Return 1 with the probabilities of an array, else 0; in its dtype."""
    _floats(p.dtype, "bernoulli")
    unit = jax.random.uniform(_key(key), p.shape, compute_dtype(p.dtype))
    return cast(lax.lt(unit, cast(p, unit.dtype)), p.dtype)


def dropout(key, x, /, p: float = 0.5):
    """Return x with each element set to 0 with probability p, and the others divided by 1 - p."""
    if not 0.0 <= p <= 1.0:
        fail("value", f"dropout(p={p})", f"x {x.shape}", "p is in [0, 1]", "dropout(p=0.5)")
    if p == 0.0:
        return x
    if p == 1.0:
        return lax.mul(x, np.zeros((), x.dtype))
    kept = lax.ge(jax.random.uniform(_key(key), x.shape, DEFAULT_FLOAT), np.float32(p))
    return _drop_elements(x, kept, p)


def _drop_elements(x, kept, p: float):
    scaled = lax.mul(x, np.asarray(1.0 / (1.0 - p), x.dtype))
    return lax.select_n(kept, lax.full_like(x, 0), scaled)


def dropout_channels(key, x, /, p: float = 0.5):
    """Return x ``(N, C, ...)`` with whole channels set to 0 with probability p, and the others divided by 1 - p."""
    if p in (0.0, 1.0):
        return dropout(key, x, p=p)
    if x.ndim < 2 or not 0.0 <= p <= 1.0:
        fail("value", f"dropout_channels(p={p})", f"x {x.shape}", "x is (N, C, ...) and p in [0, 1]", "dropout")
    kept = lax.ge(jax.random.uniform(_key(key), x.shape[:2], DEFAULT_FLOAT), np.float32(p))
    return _drop_elements(x, lax.broadcast_in_dim(kept, x.shape, (0, 1)), p)


def alpha_dropout(key, x, /, p: float = 0.5, channels: bool = False):
    """Return x with elements set to selu's lower limit with probability p, then scaled to keep mean and variance.

    Args:
        key: the random key.
        x: floats; ``(N, C, ...)`` with `channels`.
        p: the probability; 1 gives zeros.
        channels: draw once per channel rather than per element.
    """
    if p == 1.0:
        return lax.mul(x, np.zeros((), x.dtype))
    if not 0.0 <= p < 1.0:
        fail("value", f"alpha_dropout(p={p})", f"x {x.shape}", "p is in [0, 1)", "alpha_dropout(p=0.5)")
    limit = -1.7580993408473766
    a = 1.0 / math.sqrt((1.0 - p) * (1.0 + p * limit**2))
    drawn = x.shape[:2] if channels else x.shape
    kept = lax.ge(jax.random.uniform(_key(key), drawn, DEFAULT_FLOAT), np.float32(p))
    if channels:
        kept = lax.broadcast_in_dim(kept, x.shape, tuple(range(len(drawn))))
    mixed = lax.select_n(kept, lax.full_like(x, limit), x)
    return lax.add(lax.mul(mixed, np.asarray(a, x.dtype)), np.asarray(-a * limit * p, x.dtype))


def rrelu(key, x, /, lower: float = 1.0 / 8, upper: float = 1.0 / 3):
    """Return x where positive, else x times a slope drawn uniformly from [lower, upper)."""
    slope = jax.random.uniform(_key(key), x.shape, compute_dtype(x.dtype), lower, upper)
    return lax.select_n(lax.le(x, np.zeros((), x.dtype)), x, lax.mul(x, cast(slope, x.dtype)))


def gumbel_softmax(key, x, /, tau: float = 1.0, hard: bool = False, dim: int = -1):
    """Return the softmax of ``(x + noise) / tau``, a sample of a relaxed categorical distribution.

    Args:
        key: the random key.
        x: logits.
        tau: the temperature.
        hard: return one-hot samples whose gradient is that of the soft ones.
        dim: the dim of the classes.

    Source:
        Jang et al., https://arxiv.org/abs/1611.01144
    """
    dim = one(dim, x.ndim, "gumbel_softmax")
    noise = cast(jax.random.gumbel(_key(key), x.shape, compute_dtype(x.dtype)), x.dtype)
    soft = softmax(lax.div(lax.add(x, noise), np.asarray(tau, x.dtype)), dim=dim)
    if not hard:
        return soft
    still = lax.stop_gradient(soft)
    best = lax.expand_dims(lax.argmax(still, dim, INT64), (dim,))
    chosen = cast(lax.eq(lax.broadcasted_iota(INT64, x.shape, dim), broadcast_to(best, x.shape)), x.dtype)
    return lax.add(lax.sub(chosen, still), soft)


def randperm(key, /, n: int, dtype=INT64):
    """Return the integers 0 to n - 1 in random order."""
    return cast(jax.random.permutation(_key(key), n), dtype)


def exponential(key, /, shape, lambd: float = 1.0, dtype=DEFAULT_FLOAT):
    """Return floats of the exponential distribution with rate ``lambd``."""
    dtype = _floats(dtype, "exponential")
    if not lambd > 0:
        fail("value", f"exponential(lambd={lambd})", f"shape {tuple(shape)}", "the rate is positive", "lambd=1.0")

    def sample(wide):
        return lax.div(jax.random.exponential(_key(key), tuple(shape), wide), np.asarray(lambd, wide))

    return _draw_rounded(sample, dtype)


def trunc_normal(
    key, /, shape, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, dtype=DEFAULT_FLOAT
):
    """Return normal floats in [a, b]."""
    dtype = _floats(dtype, "trunc_normal")
    if not (a <= b and std > 0):
        fail(
            "value",
            f"trunc_normal(std={std}, a={a}, b={b})",
            f"shape {tuple(shape)}",
            "a <= b and std > 0",
            "a=-2, b=2",
        )

    def sample(wide):
        low, high = (np.asarray((v - mean) / std, wide) for v in (a, b))
        unit = jax.random.truncated_normal(_key(key), low, high, tuple(shape), wide)
        out = lax.add(lax.mul(unit, np.asarray(std, wide)), np.asarray(mean, wide))
        return lax.clamp(np.asarray(a, wide), out, np.asarray(b, wide))

    return _draw_rounded(sample, dtype)


def multinomial(key, p, /, num_samples: int, replacement: bool = False):
    """Return ``num_samples`` int64 indices per row, drawn by weight.

    Args:
        key: the random key.
        p: weights ``(C,)`` or ``(N, C)``, not negative, not all 0.
        num_samples: draws per row.
        replacement: whether an index can come twice; without it by the exponential race (Gumbel top-k).
    """
    if p.ndim not in (1, 2) or not is_float(p.dtype) or (not replacement and num_samples > p.shape[-1]):
        fail(
            "shape",
            f"multinomial(num_samples={num_samples})",
            f"p {p.shape} {p.dtype}",
            f"p is (C,) or (N, C) floats, and at most C = {p.shape[-1] if p.ndim else 0} draws without replacement",
            "replacement=True",
        )
    logits = lax.log(cast(p, compute_dtype(p.dtype)))
    if replacement:
        draws = jax.random.categorical(_key(key), logits, axis=-1, shape=(num_samples, *p.shape[:-1]))
        return cast(jnp.moveaxis(draws, 0, -1), INT64)
    race = lax.add(logits, jax.random.gumbel(_key(key), logits.shape, logits.dtype))
    return cast(lax.top_k(race, num_samples)[1], INT64)


def poisson(key, rate, /):
    """Return Poisson counts with the rates of an array, in its dtype."""
    _floats(rate.dtype, "poisson")
    return cast(jax.random.poisson(_key(key), cast(rate, DEFAULT_FLOAT)), rate.dtype)


def cauchy(key, /, shape, median: float = 0.0, sigma: float = 1.0, dtype=DEFAULT_FLOAT):
    """Return floats of the Cauchy distribution."""

    def sample(wide):
        unit = jax.random.cauchy(_key(key), tuple(shape), wide)
        return lax.add(lax.mul(unit, np.asarray(sigma, wide)), np.asarray(median, wide))

    return _draw_rounded(sample, _floats(dtype, "cauchy"))
