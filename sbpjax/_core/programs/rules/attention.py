"""Sharding rules of attention: splits of batch dims, heads, queries (also as a ring), and keys.

On 4 ranks q ``(2, 4, 1, 8192, 64)``, k and v ``(2, 4, 8192, 64)`` may be split

    heads     S1, S1, S1 → S1     nothing moves; before it, S2 → S1 by an all-to-all is Ulysses
    queries   S3, B, B → S3       each rank makes partial sums of the gradients of keys and values
    ring      S3, S2, S2 → S3     keys and values go from rank to rank (`attention_ring`)
    keys      B, S2, S2 → B       each rank attends to its keys, and the results are joined: for few queries
"""

from __future__ import annotations

import math

import numpy as np

from sbpjax._core.ops.attention import blocks as attention_blocks
from sbpjax._core.ops.attention import parts as attention_parts
from sbpjax._core.ops.attention.blocks import Part
from sbpjax._core.ops.attention.primitive import mask_and_segments
from sbpjax._core.ops.attention.scores import EVERY_KEY
from sbpjax._core.ops.promote import compute_dtype
from sbpjax.sbp import even_split
from sbpjax.sbp.layout import local_shape

from . import attention_ring
from .attention_ring import Ring
from .table import B, Context, Moved, P, Strategy, local, rule, transfers

SEGMENTS = ("row_segment", "key_segment")


def _split(shape: tuple[int, ...], extras: dict[str, tuple[int, ...]], dim: int) -> dict[str, int]:
    """Return the codes of each kind of operand and result where ``dim`` of the queries is split."""
    lead = len(shape) - 3
    # Dims of size 1 are broadcast.
    rows, keys = (dim if dim < lead and name in extras and extras[name][dim] > 1 else B for name in SEGMENTS)
    # Keys and values have neither groups nor queries.
    shared = dim if dim < lead else B
    mask = dim if "mask" in extras and extras["mask"][dim] > 1 else B
    return {
        "row": dim,
        "of_row": dim,
        "key": shared,
        "mask": mask,
        SEGMENTS[0]: lead if dim == lead + 1 else rows,
        SEGMENTS[1]: keys,
        "of_key": dim if dim < lead else P,
        "of_mask": dim if mask >= 0 else P,
    }


def _strategies(eqn, ins: list[str], outs: list[str], last: int) -> list[Strategy]:
    """Return the strategies that split a dim of the queries, up to the ``last`` before the width."""
    shape = eqn.invars[0].aval.shape
    extras = {name: v.aval.shape for name, v in zip(ins, eqn.invars, strict=True)}
    found = []
    for dim in range(len(shape) - last):
        if shape[dim] > 1:
            codes = _split(shape, extras, dim)
            name = "heads" if len(shape) - 4 <= dim < len(shape) - 2 else ""
            found.append(Strategy(tuple(codes[k] for k in ins), tuple(codes[k] for k in outs), name=name))
    return found


def _key_strategies(eqn, ins: list[str], outs: list[str]) -> list[Strategy]:
    """Return the strategies that split the keys: with the queries, as a ring, and alone."""
    shape, keys = eqn.invars[0].aval.shape, eqn.invars[1].aval.shape[-2]
    masked = eqn.invars[ins.index("mask")].aval.shape if "mask" in ins else (1,) * len(shape)
    row, key, last = len(shape) - 2, len(shape) - 3, len(shape) - 1
    by_row = masked[row] > 1
    ring = {"row": row, "key": key, "mask": row if by_row else B, "row_segment": row - 1, "key_segment": B}
    ring |= {"of_row": row, "of_key": key}
    split = last if masked[last] > 1 else B
    alone = {"row": B, "key": key, "mask": split, "row_segment": B, "key_segment": row - 1}
    alone |= {"of_row": P if "of_row" in outs else B, "of_key": key, "of_mask": split if split >= 0 else P}
    found = []
    if keys > 1 and shape[row] > 1 and "of_mask" not in outs:
        codes = tuple(ring[k] for k in ins), tuple(ring[k] for k in outs)
        found.append(Strategy(*codes, alone=(0, 1), name="ring"))
    if keys > 1:
        hidden = () if "of_row" in outs else (0, 1, 1)  # results, and the largest lse and the sum of weights
        codes = tuple(alone[k] for k in ins), tuple(alone[k] for k in outs)
        found.append(Strategy(*codes, hidden=hidden, name="keys"))
    return found


def _extras(eqn, masked: bool) -> list[str]:
    return ["mask"] * masked + [*SEGMENTS] * eqn.params["segmented"]


@rule("attention")
def attention(eqn, size: int) -> list[Strategy]:
    """Split batch dims and heads on all operands; query groups and queries, keys and values whole; the keys."""
    masked = len(eqn.invars) > 3 + 2 * eqn.params["segmented"]
    ins, outs = ["row", "key", "key", *_extras(eqn, masked)], ["row", "row"]
    return _strategies(eqn, ins, outs, 1) + _key_strategies(eqn, ins, outs)


@rule("attention_grad")
def attention_grad(eqn, size: int) -> list[Strategy]:
    """Split as `attention`; sums over groups or queries are partial."""
    masked = len(eqn.invars) > 6 + 2 * eqn.params["segmented"]
    outs = ["of_row", "of_key", "of_key", "of_mask"][: len(eqn.outvars)]
    ins = ["row", "key", "key", "row", "row", *_extras(eqn, masked), "row"]
    return _strategies(eqn, ins, outs, 1) + _key_strategies(eqn, ins, outs)


@rule("attention_tangent")
def attention_tangent(eqn, size: int) -> list[Strategy]:
    """Split as `attention`, but the queries stay whole."""
    tangents = ["row", "key", "key", *["mask"] * eqn.params["mask_grad"]]
    ins = ["row", "key", "key", "row", "row", *_extras(eqn, eqn.params["masked"]), *tangents]
    return _strategies(eqn, ins, ["row", "row"], 2)


@transfers("attention", "attention_grad")
def attention_moves(eqn, chosen: tuple[Strategy, ...], sizes: tuple[int, ...]) -> list[Moved]:
    """Return the transfers of a ring, and of the exchange of rows around it."""
    axis = next((a for a, strategy in enumerate(chosen) if strategy.name == "ring"), None)
    if axis is None or sizes[axis] == 1:
        return []
    size, backward = sizes[axis], eqn.primitive.name == "attention_grad"
    extras = eqn.invars[5:-1] if backward else eqn.invars[3:]
    rows, keys = eqn.invars[0].aval.shape[-2], eqn.invars[1].aval.shape[-2]
    causal = not extras and attention_ring.is_zigzag(None, None, eqn.params["how"], rows, keys)
    half = attention_ring.half_of(rows, size)

    def nbytes(variable, codes, halves: int, wide: bool = False) -> int:
        """Return the bytes of a rank's part, or in zigzag order of one or both halves of it."""
        shape = local_shape(variable.aval.shape, codes, sizes)
        dim = codes[axis]
        cut = (*shape[:dim], halves * half, *shape[dim + 1 :]) if causal else shape
        dtype = np.dtype(compute_dtype(variable.aval.dtype)) if wide else variable.aval.dtype
        return math.prod(cut) * dtype.itemsize

    ins = list(zip(eqn.invars, zip(*(s.ins for s in chosen), strict=True), strict=True))
    outs = list(zip(eqn.outvars, zip(*(s.outs for s in chosen), strict=True), strict=True))
    # Keys and values go as one; in a backward their gradients too, and one step more.
    total, launches = (size - 1) * sum(nbytes(*x, 2) for x in ins[1:3]), size - 1
    if backward:
        total, launches = total + size * sum(nbytes(*x, 2, wide=True) for x in outs[1:3]), launches + size
    if causal:
        steps = attention_ring.count_exchanges(size)
        total += steps * sum(nbytes(*x, 1) for x in (*ins, *outs))
        # q, kv, out and lse; in a backward the arrays of queries, kv, lse, dq and dkv.
        launches += steps * (5 if backward else 4)
    return [Moved("ppermute", axis, total, launches)]


@local("attention")
def attention_local(ctx: Context, q, k, v, *extras):
    """Run the kernel on the blocks; block by block where a window's queries are split, and in parts where keys are."""
    how, kernel = ctx.params["how"], ctx.params["kernel"]
    problem = mask_and_segments(extras, ctx.params["segmented"])
    keys = ctx.in_axes(1, len(ctx.in_shape(1)) - 2)
    if not keys:
        if not _rows_split(ctx):
            return ctx.bind(q, k, v, *extras)
        return attention_blocks.forward(q, k, v, *problem, how, part=_part(ctx))
    k, v = (ctx.mask(x, i, (x.ndim - 2,), 0) for x, i in ((k, 1), (v, 2)))
    if ring := _ring(ctx, keys):
        return attention_ring.forward(q, k, v, *problem, how, kernel, ring, *_lengths(ctx))
    out, lse = attention_parts.attend_part(q, k, v, *problem, how, kernel, _part(ctx))
    out, lse = attention_parts.combine_across_ranks(out, lse, ctx.names(keys))
    return attention_parts.finish_parts(out, lse, *problem, how, q.dtype)


@local("attention_grad")
def attention_grad_local(ctx: Context, q, k, v, out, lse, *rest):
    """Run the kernel on the blocks; padding has no weights, so that it adds nothing to sums."""
    last = len(rest) + 4
    *extras, ct = rest
    dims = range(q.ndim - 1)
    q, out, ct = (ctx.mask(x, i, dims, 0) for x, i in ((q, 0), (out, 3), (ct, last)))
    k, v = (ctx.mask(x, i, range(x.ndim - 1), 0) for x, i in ((k, 1), (v, 2)))
    extras = [ctx.mask(x, i, range(x.ndim), 0) for i, x in enumerate(extras, 5)]
    lse = ctx.mask(lse, 4, dims, np.inf)
    how, kernel, grad = (ctx.params[name] for name in ("how", "kernel", "mask_grad"))
    problem = (q, k, v, *mask_and_segments(extras, ctx.params["segmented"]), how)
    keys = ctx.in_axes(1, len(ctx.in_shape(1)) - 2)
    if not keys:
        if not _rows_split(ctx):
            return ctx.bind(q, k, v, out, lse, *extras, ct)
        return attention_blocks.backward(*problem, out, lse, ct, mask_grad=grad, part=_part(ctx))
    if ring := _ring(ctx, keys):
        return attention_ring.backward(*problem, kernel, out, lse, ct, ring, *_lengths(ctx))
    return attention_parts.gradients(*problem, kernel, _part(ctx), out, lse, ct, grad)


def _rows_split(ctx: Context) -> bool:
    return ctx.params["how"].window != EVERY_KEY and bool(ctx.in_axes(0, len(ctx.in_shape(0)) - 2))


def _ring(ctx: Context, keys: tuple[int, ...]) -> Ring | None:
    """Return the ring of the axis that splits queries and keys, None if keys are split alone."""
    rows = ctx.in_axes(0, len(ctx.in_shape(0)) - 2)
    if rows != keys:
        return None
    (axis,) = keys
    return Ring(ctx.here.names[axis], ctx.here.sizes[axis], ctx.here.index(axis))


def _lengths(ctx: Context) -> tuple[int, int]:
    return ctx.in_shape(0)[-2], ctx.in_shape(1)[-2]


def _part(ctx: Context) -> Part:
    """Return the queries and keys of this rank."""
    row, _ = ctx.in_part(0, len(ctx.in_shape(0)) - 2)
    dim = len(ctx.in_shape(1)) - 2
    first, count = ctx.in_part(1, dim)
    sizes = tuple(ctx.here.sizes[a] for a in ctx.in_axes(1, dim))
    even = even_split.even(ctx.in_shape(1)[dim], sizes)
    return Part(row=np.int32(0) + row, key=np.int32(0) + first, keys=None if even else count)
