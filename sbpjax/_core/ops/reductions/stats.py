"""Sample statistics: covariance, correlation, integrals, gradients, histograms, quantiles.

Worked case: `trapezoid` of ``[1, 3, 2]`` at distance 1 is 4.5: 2 between the first two samples, 2.5 between the last.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..arithmetic import lerp
from ..dims import fail, one
from ..promote import DEFAULT_FLOAT, cast, is_float
from .sort import _INTERPOLATIONS, _check_quantile, add_quantile_slope, sort


def cov(x, fweights=None, aweights=None, /, correction: int = 1):
    """Return the covariances ``(V, V)`` of V variables in the rows of x, their samples in its columns.

    Args:
        x: ``(V, N)``, or ``(N,)`` for one variable; that of one variable is 0-d.
        fweights: how often each sample counts: integers ``(N,)``.
        aweights: how much each sample counts: floats ``(N,)``.
        correction: taken off the number of samples.
    """
    if x.ndim > 2 or x.dtype == np.bool_:
        rule = "cov(): expected input to have two or fewer dimensions, of numbers"
        fail("shape", "cov(x)", f"{x.dtype}{list(x.shape)}", rule, "x.flatten(1)")
    for name, w, kind in (("fweights", fweights, "integral"), ("aweights", aweights, "floating point")):
        if w is None:
            continue
        if w.ndim > 1:
            rule = f"cov(): expected {name} to have one or fewer dimensions but got {w.ndim} dimensions"
            fail("shape", "cov(x)", f"{name} {w.shape}", rule, f"{name}.flatten()")
        if is_float(w.dtype) == (kind == "integral") or w.dtype == np.bool_:
            rule = f"cov(): expected {name} to have {kind} dtype but got {w.dtype}"
            fail("shape", "cov(x)", f"{name} of {w.dtype}", rule, "aweights are floats, fweights integers")
        if w.size != (x.shape[-1] if x.ndim else 1):
            rule = f"cov(): expected {name} to have the same numel as there are observations, but got {w.size}"
            fail("shape", "cov(x)", f"x {x.shape}, {name} {w.shape}", rule, "one weight per observation")
    x = lax.reshape(x, (1, x.size)) if x.ndim < 2 else x
    alone = x.shape[0] == 1
    x = x if is_float(x.dtype) else cast(x, DEFAULT_FLOAT)
    x = x if aweights is None else cast(x, jnp.promote_types(x.dtype, aweights.dtype))
    real = jnp.real(x).dtype
    weight = None
    for w in (fweights, aweights):
        if w is not None:
            weight = cast(w, real) if weight is None else weight * cast(w, real)
    count = x.shape[1] if weight is None else jnp.sum(weight)
    if weight is None:
        mean = jnp.mean(x, 1, keepdims=True)
        free = max(count - correction, 0)
    else:
        mean = jnp.sum(x * weight, 1, keepdims=True) / count
        used = count if aweights is None else jnp.sum(weight * cast(aweights, real)) / count
        free = count - correction * used if aweights is not None else count - correction
        free = jnp.maximum(free, 0)
    apart = x - mean
    other = apart if weight is None else apart * weight
    product = lax.dot_general(other, jnp.conj(apart), (((1,), (1,)), ((), ())))
    out = product / jnp.asarray(free, real)
    return lax.reshape(out, ()) if alone else out


def corrcoef(x, /):
    """Return the correlations of variables in the rows of x."""
    c = cov(x)
    if c.ndim == 0:
        return c / c
    size = jnp.sqrt(jnp.real(jnp.diagonal(c)))
    out = c / size[:, None] / size[None, :]
    if jnp.iscomplexobj(out):
        return lax.complex(jnp.clip(jnp.real(out), -1, 1), jnp.clip(jnp.imag(out), -1, 1))
    return jnp.clip(out, -1, 1)


def _areas(y, x, dx, dim: int):
    dim = one(dim, y.ndim, "trapezoid")
    n = y.shape[dim]
    if not is_float(y.dtype):
        y = cast(y, DEFAULT_FLOAT)
    sides = lax.slice_in_dim(y, 1, n, axis=dim) + lax.slice_in_dim(y, 0, max(n - 1, 0), axis=dim) if n else y
    if x is None:
        return sides * np.asarray(dx / 2, sides.dtype), dim
    if x.ndim == 1:
        steps = x[1:] - x[:-1]
        if steps.shape[0] != sides.shape[dim]:
            rule = "There must be one `x` value for each sample point"
            fail("shape", "trapezoid(y, x)", f"y {y.shape}, x {x.shape}", rule, "trapezoid(y, dx=1)")
        steps = lax.broadcast_in_dim(steps, (*(1,) * dim, steps.shape[0], *(1,) * (y.ndim - dim - 1)), (dim,))
    else:
        far = x.ndim - (y.ndim - dim)
        m = x.shape[far]
        steps = lax.slice_in_dim(x, 1, m, axis=far) - lax.slice_in_dim(x, 0, m - 1, axis=far)
    half = sides / np.asarray(2, sides.dtype)
    return half * steps.astype(half.dtype) if not is_float(x.dtype) else half * steps, dim


def trapezoid(y, x=None, /, dx: float = 1.0, dim: int = -1):
    """Return the integral along a dim by trapezoids, between samples ``dx`` apart or at x."""
    areas, dim = _areas(y, x, dx, dim)
    n = y.shape[dim]
    if x is None and n:  # all samples but half of the first and the last: infinities cancel as in torch
        y = cast(y, areas.dtype)
        ends = lax.index_in_dim(y, 0, dim, keepdims=False) + lax.index_in_dim(y, n - 1, dim, keepdims=False)
        return (jnp.sum(y, dim) - ends * np.asarray(0.5, y.dtype)) * np.asarray(dx, y.dtype)
    return jnp.sum(areas, areas.ndim - (y.ndim - dim))


def cumulative_trapezoid(y, x=None, /, dx: float = 1.0, dim: int = -1):
    """Return the running integral along a dim by trapezoids."""
    areas, dim = _areas(y, x, dx, dim)
    return lax.cumsum(areas, areas.ndim - (y.ndim - dim))


def gradient_along(x, at=None, /, dim: int = 0, spacing: float = 1.0, edge_order: int = 1):
    """Return the estimated derivative along a dim: central differences, one-sided at the ends.

    Args:
        x: samples.
        at: where they were taken, a vector; None for a distance of ``spacing``.
        dim: the dim.
        spacing: the distance.
        edge_order: 1 or 2, the order of the estimate at the ends.
    """
    n = x.shape[dim]
    if n < edge_order + 1:
        rule = "torch.gradient expected each dimension size to be at least edge_order+1"
        fail("shape", f"gradient(edge_order={edge_order})", f"x {x.shape}", rule, "edge_order=1")
    x = x if is_float(x.dtype) else cast(x, DEFAULT_FLOAT)
    shape = [1] * x.ndim

    def part(start: int, stop: int):
        return lax.slice_in_dim(x, start, stop, axis=dim)

    if at is None:
        steps = jnp.full((n - 1,), spacing, jnp.real(x).dtype)
    else:
        steps = (at[1:] - at[:-1]).astype(jnp.real(x).dtype)

    def along(v):
        shape[dim] = v.shape[0]
        return lax.reshape(v, tuple(shape))

    low, high = along(steps[:-1]), along(steps[1:])
    if at is None:
        inner = (part(2, n) - part(0, n - 2)) / along(steps[1:] * 2)
    else:
        inner = (
            part(0, n - 2) * (-high / (low * (low + high)))
            + part(1, n - 1) * ((high - low) / (low * high))
            + part(2, n) * (low / (high * (low + high)))
        )
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / along(steps[:1])
        last = (part(n - 1, n) - part(n - 2, n - 1)) / along(steps[-1:])
    else:
        a, b = along(steps[:1]), along(steps[1:2])
        first = (
            -(2 * a + b) / (a * (a + b)) * part(0, 1) + (a + b) / (a * b) * part(1, 2) - a / (b * (a + b)) * part(2, 3)
        )
        a, b = along(steps[-2:-1]), along(steps[-1:])
        last = b / (a * (a + b)) * part(n - 3, n - 2) - (a + b) / (a * b) * part(n - 2, n - 1)
        last += (2 * b + a) / (b * (a + b)) * part(n - 1, n)
    return lax.concatenate([first, inner, last], dim).astype(x.dtype)


def histogram_counts(x, edges, weight=None, /, density: bool = False):
    """Return the number (or the weight) of elements in each bin between sorted edges; the last bin has both ends."""
    x, bins = x.reshape(-1), edges.shape[0] - 1
    place = jnp.searchsorted(edges, x, side="right") - 1
    place = jnp.where(x == edges[-1], bins - 1, place)
    ok = (x >= edges[0]) & (x <= edges[-1])
    value = jnp.ones(x.shape, edges.dtype) if weight is None else weight.reshape(-1).astype(edges.dtype)
    counts = jnp.zeros((bins,), edges.dtype).at[jnp.where(ok, place, bins)].add(value, mode="drop")
    return counts / (jnp.sum(counts) * (edges[1:] - edges[:-1])) if density else counts


def nanquantile(
    x,
    at=None,
    /,
    q: float | tuple[float, ...] | None = 0.5,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
):
    """Return the q-quantiles along ``dim`` (or of all elements) ignoring NaN; arguments as `sort.quantile`."""
    if q is None:  # in a trace, where values outside [0, 1] cannot raise
        at = jnp.clip(at, 0, 1)
        qs: Any = [at] if at.ndim == 0 else [lax.index_in_dim(at, i, 0, keepdims=False) for i in range(at.shape[0])]
        several, at = at.ndim > 0, None
    else:
        qs, several = (q, True) if isinstance(q, (tuple, list)) else ((q,), False)

    _check_quantile(x)
    known = q is None or all(0.0 <= v <= 1.0 for v in qs)
    if interpolation not in _INTERPOLATIONS or not known:
        rule = f"q is in [0, 1], interpolation is one of {_INTERPOLATIONS}"
        fail(
            "value", f"nanquantile(q={q}, interpolation={interpolation!r})", f"x {x.shape}", rule, "nanquantile(x, 0.5)"
        )
    ndim = x.ndim
    axis = 0 if dim is None else one(dim, ndim, "nanquantile")
    kept = (1,) * ndim if dim is None else tuple(1 if d == axis else n for d, n in enumerate(x.shape))
    x = x.reshape(-1) if dim is None or not ndim else x
    values = sort(x, dim=axis)[0]  # NaN comes last
    count = jnp.sum((x == x).astype(np.int64), axis, keepdims=True)
    outs = []
    for i, v in enumerate(qs):
        place = jnp.asarray(v, x.dtype) * (count - 1).astype(x.dtype)
        below = jnp.maximum(jnp.floor(place), 0)
        if interpolation == "nearest":
            below = jnp.maximum(jnp.round(place), 0)
        above = below if interpolation in ("nearest", "lower") else jnp.maximum(jnp.ceil(place), 0)
        below = above if interpolation == "higher" else below
        share = jnp.where(above > below, 0.5, 0.0) if interpolation == "midpoint" else jnp.maximum(place, 0) - below
        share = jnp.zeros_like(share) if interpolation in ("nearest", "lower", "higher") else share
        low = jnp.take_along_axis(values, below.astype(np.int64), axis)
        high = jnp.take_along_axis(values, above.astype(np.int64), axis)
        blended = interpolation in ("linear", "midpoint")
        out = lerp(low, high, share.astype(x.dtype)) if blended else low
        out = add_quantile_slope(out, at, i, low, high, count - 1) if interpolation == "linear" else out
        out = lax.squeeze(out, (axis,))
        outs.append(out.reshape(kept) if keepdim else out)
    return jnp.stack(outs) if several else outs[0]


def quantile_in_trace(x, at, /, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"):
    """Return `sort.quantile` of places that have no values yet; outside [0, 1] they count as its ends."""
    found = nanquantile(x, at, q=None, dim=dim, keepdim=keepdim, interpolation=interpolation)
    axis = None if dim is None else one(dim, x.ndim, "quantile")
    nothing = jnp.any(x != x, axis if x.ndim else None, keepdims=keepdim)
    return jnp.where(nothing, np.asarray(np.nan, found.dtype), found)
