"""Rules of attention: batch dims and heads are split freely, and the queries over all keys.

On 4 ranks q ``(2, 4, 1, 8192, 64)``, k and v ``(2, 4, 8192, 64)`` may be split by heads, ``S1, S1, S1 → S1``, or by
queries, ``S3, B, B → S3``: then each rank makes partial sums of the gradients of keys and values.
"""

from __future__ import annotations

import numpy as np

from sbpjax.ops import attention_blocks

from .table import B, Context, P, Strategy, local, rule


def _split(shape: tuple[int, ...], mask_shape, dim: int) -> dict[str, int]:
    """Return the codes of each kind of operand and result where ``dim`` of the queries is split."""
    lead = len(shape) - 3
    # Keys and values have neither groups nor queries.
    shared = dim if dim < lead else B
    mask = dim if mask_shape is not None and mask_shape[dim] > 1 else B
    return {
        "row": dim,
        "key": shared,
        "mask": mask,
        "of_key": dim if dim < lead else P,
        "of_mask": dim if mask >= 0 else P,
    }


def _strategies(eqn, ins: list[str], outs: list[str], last: int) -> list[Strategy]:
    """Return the strategies that split a dim of the queries, up to the ``last`` before the width."""
    shape = eqn.invars[0].aval.shape
    mask = eqn.invars[ins.index("mask")].aval.shape if "mask" in ins else None
    found = []
    for dim in range(len(shape) - last):
        if shape[dim] > 1:
            codes = _split(shape, mask, dim)
            found.append(Strategy(tuple(codes[k] for k in ins), tuple(codes[k] for k in outs)))
    return found


@rule("attention")
def attention(eqn, size: int) -> list[Strategy]:
    """Batch dims and heads on all operands; groups of queries and queries with keys and values whole."""
    return _strategies(eqn, ["row", "key", "key", "mask"][: len(eqn.invars)], ["row", "row"], 1)


@rule("attention_grad")
def attention_grad(eqn, size: int) -> list[Strategy]:
    """As `attention`; what is summed over groups or queries comes out partial."""
    mask = ["mask"] if len(eqn.invars) > 6 else []
    outs = ["row", "of_key", "of_key", "of_mask"][: len(eqn.outvars)]
    return _strategies(eqn, ["row", "key", "key", "row", "row", *mask, "row"], outs, 1)


@rule("attention_tangent")
def attention_tangent(eqn, size: int) -> list[Strategy]:
    """As `attention`, but the queries stay whole."""
    masks = [["mask"] * eqn.params["masked"], ["mask"] * eqn.params["mask_grad"]]
    ins = ["row", "key", "key", "row", "row", *masks[0], "row", "key", "key", *masks[1]]
    return _strategies(eqn, ins, ["row", "row"], 2)


@local("attention")
def attention_local(ctx: Context, q, k, v, *mask):
    """Run the kernel on the blocks; where causal queries are split, block by block from the first of this rank."""
    if not _rows_split(ctx):
        return ctx.bind(q, k, v, *mask)
    return attention_blocks.forward(q, k, v, mask[0] if mask else None, **_numbers(ctx))


@local("attention_grad")
def attention_grad_local(ctx: Context, q, k, v, out, lse, *rest):
    """Run the kernel on the blocks; what lies in the padding has no weights, so that it adds nothing to sums."""
    last = len(rest) + 4
    *mask, ct = rest
    dims = range(q.ndim - 1)
    q, out, ct = (ctx.mask(x, i, dims, 0) for x, i in ((q, 0), (out, 3), (ct, last)))
    k, v = (ctx.mask(x, i, range(x.ndim - 2), 0) for x, i in ((k, 1), (v, 2)))
    mask = [ctx.mask(x, 5, dims, 0) for x in mask]
    lse = ctx.mask(lse, 4, dims, np.inf)
    if not _rows_split(ctx):
        return ctx.bind(q, k, v, out, lse, *mask, ct)
    grad = ctx.params["mask_grad"]
    one = mask[0] if mask else None
    return attention_blocks.backward(q, k, v, one, out, lse, ct, mask_grad=grad, **_numbers(ctx))


def _rows_split(ctx: Context) -> bool:
    return ctx.params["causal"] and bool(ctx.in_axes(0, len(ctx.in_shape(0)) - 2))


def _numbers(ctx: Context) -> dict:
    offset, _ = ctx.in_part(0, len(ctx.in_shape(0)) - 2)
    part = attention_blocks.Part(row=np.int32(0) + offset)
    return {"scale": ctx.params["scale"], "causal": True, "part": part}
