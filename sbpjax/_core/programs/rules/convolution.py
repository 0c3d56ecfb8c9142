"""Sharding rules of convolutions and their two gradients, see `_core.ops.conv.primitive`.

Output, gradient of the image and gradient of the kernel are one sum over the same indices:

    index     input   kernel   output
    image       0        -        0
    channel     1        1        -
    filter      -        0        1
    pixel      2...      -       2...      of kernels of one pixel, without strides
    group       1        0        1        in the place of channel and filter

Each of them may be split. Where the result of a kind does not have the index, the sum over it is partial: on 4 ranks a
depthwise convolution of ``(8, 64, 56, 56)`` takes images ``S0, B → S0`` or channels ``S1, S0 → S1``, and the gradient
of its kernels takes images ``S0, S0 → P``.
"""

from __future__ import annotations

import math

from sbpjax._core.ops.conv.cpu import is_pointwise
from sbpjax._core.ops.conv.primitive import READS

from .table import B, Context, P, Strategy, local, rule

_IMAGE = {"input": 0, "output": 0}
_CHANNEL, _FILTER = {"input": 1, "kernel": 1}, {"kernel": 0, "output": 1}
_GROUP = {"input": 1, "kernel": 0, "output": 1}


def _indices(params) -> list[dict[str, int]]:
    """Return the indices that may be split anywhere, as the dims that they are."""
    found = [_IMAGE]
    if params["groups"] == 1:
        found += [_CHANNEL, _FILTER]
        if is_pointwise(params["window"], params["padding"]) and set(params["strides"]) == {1}:
            found += [{"input": d, "output": d} for d in range(2, 2 + len(params["window"]))]
    return found


@rule("convolution")
def convolution(eqn, size: int) -> list[Strategy]:
    """Split every index; a sum over one is P, as is a result that is linear in a partial operand."""
    p = eqn.params
    kind, (a, b) = p["kind"], READS[p["kind"]]
    shapes = {a: eqn.invars[0].aval.shape, b: eqn.invars[1].aval.shape, kind: eqn.outvars[0].aval.shape}
    found = [
        Strategy((index.get(a, B), index.get(b, B)), (index.get(kind, P),))
        for index in _indices(p)
        if all(shapes[name][d] > 1 for name, d in index.items())
    ]
    # A split that cuts a group would need its other half for every output channel.
    if p["groups"] > 1 and p["groups"] % size == 0:
        ins = (_GROUP[a], _GROUP[b])
        found.append(Strategy(ins, (_GROUP[kind],), rigid_ins=(0, 1), groups=p["groups"]))
    return [*found, Strategy((P, B), (P,)), Strategy((B, P), (P,))]


@local("convolution")
def convolution_local(ctx: Context, a, b):
    """Convolve the blocks; padding adds nothing to a sum over split dims."""
    p = ctx.params
    kind, names = p["kind"], READS[p["kind"]]
    blocks = [a, b]
    for index in _indices(p):
        if kind not in index:
            blocks = [ctx.mask(x, i, (index[name],), 0) for i, (x, name) in enumerate(zip(blocks, names, strict=True))]
    changed: dict = {}
    if p["groups"] > 1:
        pair = tuple(_GROUP[name] for name in names)
        cut = math.prod(n for n, l, r in zip(ctx.here.sizes, ctx.ins[0], ctx.ins[1]) if (l, r) == pair)
        changed["groups"] = p["groups"] // cut
    elif len(_indices(p)) > 3:  # of one pixel: the block's pixels
        changed["image"] = blocks[0].shape[2:]
    return ctx.bind(*blocks, **changed)
