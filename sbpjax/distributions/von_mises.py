"""`VonMises`: angles around a direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

import sbpjax
from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.func import draw

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property


def von_mises(key: jax.Array, concentration: jax.Array, /) -> jax.Array:
    """Return angles around 0, by rejection from a wrapped Cauchy distribution.

    The formulas are written with what remains of 1 where concentrations are large, and without differences of nearly
    equal numbers where they are small, so that float32 is enough.

    Source: Best, Fisher: Efficient simulation of the von Mises distribution (1979).
    """
    dtype = jnp.promote_types(concentration.dtype, jnp.float32)
    k = jnp.clip(concentration.astype(dtype), 1e-18, 1e18)
    s = jnp.sqrt(1 + 4 * k * k)
    root = jnp.sqrt(2 * (1 + s))
    rho = 2 * k * root / ((1 + s) * (root + 2))  # ρ = (τ - √2τ) / 2κ, of τ = 1 + s
    rest = jnp.where(k < 1, 1 - rho, (root - 1 - 1 / (s + 2 * k)) / (2 * jnp.maximum(k, 1)))  # 1 - ρ
    beyond = rest * rest / (2 * rho)  # r - 1, of r = (1 + ρ²) / 2ρ

    def again(state):
        return ~jnp.all(state[0])

    def draw(state):
        done, angle, key = state
        key, now = jax.random.split(key)
        u = jax.random.uniform(now, (3, *k.shape), dtype, minval=jnp.finfo(dtype).tiny)
        low = 2 * jnp.square(jnp.sin(math.pi / 2 * u[0]))  # 1 - z, of z = cos π u
        short = beyond * low / (beyond + 2 - low)  # 1 - f, of f = (1 + r z) / (r + z)
        c = k * (beyond + short)  # κ (r - f)
        accepted = (c * (2 - c) > u[1]) | (jnp.log(c / u[1]) + 1 - c >= 0)
        found = jnp.sign(u[2] - 0.5) * 2 * jnp.arcsin(jnp.sqrt(jnp.minimum(short / 2, 1)))
        return done | accepted, jnp.where(accepted & ~done, found, angle), key

    begin = (jnp.isnan(k), jnp.where(jnp.isnan(k), k, 0), key)
    return jax.lax.while_loop(again, draw, begin)[1].astype(concentration.dtype)


class VonMises(Distribution):
    """Angles around a direction; any real number is an angle, modulo 2π.

    Args:
        loc: the direction.
        concentration: how near to it they are; 0 is all directions alike.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The direction."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        """The circular variance, 1 minus the length of the mean of the unit vectors."""
        k = self.concentration
        return 1 - sbpjax.special.i1e(k) / sbpjax.special.i0e(k)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = self._sample_size(sample_shape)
            around = draw(von_mises, self.concentration.expand(shape))
            return (around + math.pi + self.loc) % (2 * math.pi) - math.pi

    def log_prob(self, value: Any) -> Tensor:
        k = self.concentration
        bessel = sbpjax.special.i0e(k).log() + k
        return k * (self._check_value(value) - self.loc).cos() - math.log(2 * math.pi) - bessel
