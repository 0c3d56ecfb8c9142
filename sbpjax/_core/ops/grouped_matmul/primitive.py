"""Grouped matmul primitives for mixtures of experts, forward and backward.

    grouped_matmul    x, w, starts, sizes    → x[row] · w[group of row], for all rows
    grouped_outer     x, y, starts, sizes    → Σ x[row]ᵀ y[row] over the rows of each group

Both are linear in each of their first two operands, and the derivatives of each are the two again: with ct the gradient
of x · w, that of x is ``grouped_matmul(ct, wᵀ)`` and that of w ``grouped_outer(x, ct)``.

x is ``(*lead, M, in)``, w ``(E, in, out)``, or ``(E, out, in)`` if ``transposed``, starts and sizes int32
``(*lead, E)``. With ``packed`` the spans of each sequence follow each other from its first row. The kernel is chosen
at lowering: JAX's Pallas kernels, megablox on TPU and ragged_dot_mgpu on Hopper, else
`_core.ops.grouped_matmul.grouped_matmul`.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.interpreters import ad, batching

from sbpjax._core.jax_private import Primitive

from ..dims import fail
from ..own_primitives import register
from ..promote import is_float
from . import gpu as grouped_matmul_gpu
from . import grouped_matmul as in_tiles
from . import tpu as grouped_matmul_tpu

grouped_matmul_p, grouped_outer_p = Primitive("grouped_matmul"), Primitive("grouped_outer")


def grouped_matmul(x, w, group_sizes, /):
    """Return the products of rows with the matrix of their group: ``y[i] = x[i] · w[g]`` for the rows i of group g.

    The first ``group_sizes[0]`` rows are of group 0, the next ``group_sizes[1]`` of group 1, and so on; rows after the
    last group give zeros. The work grows with the rows, not with the groups. On TPU and on NVIDIA's Hopper it is a
    kernel.

    Args:
        x: ``(*lead, M, in)``: of each sequence M rows in the order of their groups. Any split of lead, M or in.
        w: ``(G, in, out)``, of x's dtype. Split by groups each rank computes its own groups' rows.
        group_sizes: ``(*lead, G)`` integers with a sum of at most M, in every rank whole but for lead.

    Returns:
        ``(*lead, M, out)`` in x's dtype. Splits of lead, M and out stay; one of in or of groups gives a partial sum.

    Example:
        >>> x, w = flow.ones(4, 2), flow.tensor([[[1.0], [1.0]], [[2.0], [2.0]]])
        >>> flow.nn.functional.grouped_matmul(x, w, flow.tensor([1, 3])).flatten()
        tensor([2., 4., 4., 4.])

    Source: Gale et al., MegaBlocks, arXiv:2211.15841.
    """
    seen = f"input {x.shape}, weight {w.shape}, group_sizes {group_sizes.shape}"
    if x.ndim < 2 or w.ndim != 3 or w.shape[1] != x.shape[-1] or group_sizes.shape != (*x.shape[:-2], w.shape[0]):
        rule = "input (*lead, M, in), weight (G, in, out), group_sizes (*lead, G)"
        fail("shape", "grouped_matmul", seen, rule, "reshape them")
    if not (is_float(x.dtype) and x.dtype == w.dtype):
        fail("type", "grouped_matmul", f"dtypes {x.dtype}, {w.dtype}", "both are the same float", "cast")
    if not np.issubdtype(group_sizes.dtype, np.integer):
        fail("type", "grouped_matmul", f"group_sizes of dtype {group_sizes.dtype}", "integers", "group_sizes.long()")
    sizes = group_sizes.astype(np.int32)
    starts = lax.cumsum(sizes, sizes.ndim - 1) - sizes
    return grouped_matmul_p.bind(x, w, starts, sizes, transposed=False, packed=True)[0]


# --- shapes and derivatives ------------------------------------------------------------------------------------------


def _shapes(x, w, starts, sizes, *, transposed, packed):
    return [ShapedArray((*x.shape[:-1], w.shape[1 if transposed else 2]), x.dtype)]


def _outer_shapes(x, y, starts, sizes, *, packed):
    return [ShapedArray((sizes.shape[-1], x.shape[-1], y.shape[-1]), x.dtype)]


def _jvp(primitive):
    def rule(primals, tangents, **params):
        a, b, *spans = primals
        terms = []
        if type(tangents[0]) is not ad.Zero:
            terms.append(primitive.bind(tangents[0], b, *spans, **params)[0])
        if type(tangents[1]) is not ad.Zero:
            terms.append(primitive.bind(a, tangents[1], *spans, **params)[0])
        (out,) = primitive.bind(*primals, **params)
        tangent = sum(terms[1:], terms[0]) if terms else ad.Zero(jax.typeof(out).to_tangent_aval())
        return [out], [tangent]

    return rule


def _transpose(cts, x, w, starts, sizes, *, transposed, packed):
    (ct,) = cts
    if ad.is_undefined_primal(x):
        grad = (
            ad.Zero(x.aval)
            if type(ct) is ad.Zero
            else grouped_matmul_p.bind(ct, w, starts, sizes, transposed=not transposed, packed=packed)[0]
        )
        return [grad, None, None, None]
    pair = (ct, x) if transposed else (x, ct)
    grad = ad.Zero(w.aval) if type(ct) is ad.Zero else grouped_outer_p.bind(*pair, starts, sizes, packed=packed)[0]
    return [None, grad, None, None]


def _outer_transpose(cts, x, y, starts, sizes, *, packed):
    (ct,) = cts
    first = ad.is_undefined_primal(x)
    if type(ct) is ad.Zero:
        grad = ad.Zero((x if first else y).aval)
    else:
        rows = y if first else x
        grad = grouped_matmul_p.bind(rows, ct, starts, sizes, transposed=first, packed=packed)[0]
    return [grad, None, None, None] if first else [None, grad, None, None]


for _primitive, _rule in ((grouped_matmul_p, _transpose), (grouped_outer_p, _outer_transpose)):
    ad.primitive_jvps[_primitive] = _jvp(_primitive)
    ad.primitive_transposes[_primitive] = _rule


# --- batching --------------------------------------------------------------------------------------------------------


def _batching_rule(primitive, shared: int | None):
    """Return the batching rule of a primitive; operand `shared` has no rows, and is one for all of a batch."""

    def rule(operands, dims, **params):
        (size,) = {x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None}
        if shared is not None and dims[shared] is None:
            moved = [
                x
                if i == shared
                else jnp.broadcast_to(x[None], (size, *x.shape))
                if d is None
                else jnp.moveaxis(x, d, 0)
                for i, (x, d) in enumerate(zip(operands, dims, strict=True))
            ]
            return primitive.bind(*moved, **params), [0]
        given = [jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True) if d is not None]

        def one(given):
            rest = iter(given)
            return primitive.bind(*(x if d is None else next(rest) for x, d in zip(operands, dims)), **params)

        return lax.map(one, given), [0]

    return rule


batching.primitive_batchers[grouped_matmul_p] = _batching_rule(grouped_matmul_p, 1)
batching.primitive_batchers[grouped_outer_p] = _batching_rule(grouped_outer_p, None)


# --- lowering --------------------------------------------------------------------------------------------------------

_KERNELS = {"tpu": grouped_matmul_tpu, "cuda": grouped_matmul_gpu}


def _as_matrices(x, starts, sizes):
    """Return rows ``(L, M, ·)`` and spans ``(L, E)``."""
    lead = math.prod(starts.shape[:-1])
    return x.reshape(lead, *x.shape[-2:]), *(s.reshape(lead, s.shape[-1]) for s in (starts, sizes))


def _pack_for_kernel(arrays, starts, sizes, is_packed: bool):
    """Return rows as one sequence, group by group from the first row, sizes, and how to bring a result back."""
    if not is_packed or arrays[0].shape[0] > 1:
        return in_tiles.pack_rows(arrays, starts, sizes)
    own = (jnp.arange(arrays[0].shape[1], dtype=np.int32) < sizes[0].sum(dtype=np.int32))[:, None]
    return [v[0] for v in arrays], sizes[0], lambda found: jnp.where(own, found, 0)[None]


def _matmul_on(x, w, starts, sizes, *, transposed, packed, platform):
    rows, starts, sizes = _as_matrices(x, starts, sizes)
    kernel = _KERNELS.get(platform)
    if kernel is not None and kernel.supports_matmul(rows, w, transposed):
        (flat,), of_group, back = _pack_for_kernel([rows], starts, sizes, packed)
        out = back(kernel.matmul(flat, w, of_group, transposed=transposed))
    else:
        out = in_tiles.matmul(rows, w, starts, sizes, transposed=transposed, on_cpu=platform in ("cpu", "tpu"))
    return [out.reshape(*x.shape[:-1], w.shape[1 if transposed else 2])]


def _outer_on(x, y, starts, sizes, *, packed, platform):
    a, flat_starts, flat_sizes = _as_matrices(x, starts, sizes)
    b = y.reshape(*a.shape[:2], y.shape[-1])
    kernel = _KERNELS.get(platform)
    if kernel is not None and kernel.supports_outer(a, b):
        flat, of_group, _ = _pack_for_kernel([a, b], flat_starts, flat_sizes, packed)
        return [kernel.outer(*flat, of_group)]
    return [in_tiles.outer(a, b, flat_starts, flat_sizes, on_cpu=platform in ("cpu", "tpu"))]


register(grouped_matmul_p, _shapes, _matmul_on)
register(grouped_outer_p, _outer_shapes, _outer_on)


def flops(eqn) -> float:
    """Return the multiply-adds of the equation, counted twice each, if every row has a group."""
    x, other = (v.aval.shape for v in eqn.invars[:2])
    out = eqn.outvars[0].aval.shape[-1] if eqn.primitive is grouped_matmul_p else other[-1]
    return 2.0 * math.prod(x) * out
