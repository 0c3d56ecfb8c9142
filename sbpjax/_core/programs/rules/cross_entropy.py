"""Sharding rules of cross entropy: splits of tokens and of classes (vocabulary).

On 4 ranks x ``(8192, 1024)``, w ``(131072, 1024)`` and targets ``(8192,)`` may be split by tokens, ``S0, B, S0 → S0``:
then each rank makes a partial sum of the gradient of w. Or by classes, ``B, S0, B → B``: each rank has the logits of
its classes, ranks exchange the largest logit and two sums of each token, and the gradient of x is a partial sum.
"""

from __future__ import annotations

import jax

from sbpjax._core.ops.losses import cross_entropy_primitive as primitive
from sbpjax._core.ops.losses.linear_cross_entropy import Classes
from sbpjax._core.programs.primitives import LOSSES
from sbpjax.sbp import even_split

from .table import B, Context, P, Strategy, local, rule


@rule(*LOSSES)
def cross_entropy(eqn, size: int) -> list[Strategy]:
    """Split tokens on operands with a row per token; classes on logits or weights, but for a tangent."""
    name, params, count = eqn.primitive.name, eqn.params, len(eqn.invars)
    shared = primitive.shared_operands(name, count, params)
    # The gradients come in the order of the floats that they are of.
    wanted = [i for i, d in enumerate(params.get("dtypes", ())) if d is not None]
    found = []
    for dim, tokens in enumerate(eqn.outvars[0].aval.shape):
        if tokens > 1:
            ins = tuple(B if i in shared else dim for i in range(count))
            found.append(Strategy(ins, (dim, *(P if i in shared else dim for i in wanted))))
    if "wanted" not in params and _classes(eqn) > 1:
        last = len(eqn.outvars[0].aval.shape)
        by_class = shared or {0}
        code = 0 if shared else last
        ins = tuple(code if i in by_class else B for i in range(count))
        # The largest logit, the sum of exponentials, the target's logit, and with smoothing the sum of logits.
        hidden = (0,) * (3 + (params["smoothing"] > 0))
        found.append(Strategy(ins, (B, *(code if i in by_class else P for i in wanted)), hidden=hidden))
    return found


def _classes(eqn) -> int:
    linear = eqn.primitive.name.startswith("linear")
    return eqn.invars[1].aval.shape[0] if linear else eqn.invars[0].aval.shape[-1]


@local("cross_entropy", "linear_cross_entropy")
def losses_local(ctx: Context, *blocks):
    """Compute the losses of the block; where classes are split, with sums over the ranks."""
    return _run(ctx, primitive.losses_on, blocks)


@local("cross_entropy_grad", "linear_cross_entropy_grad")
def gradients_local(ctx: Context, *blocks):
    """Compute losses and gradients of the block; padding adds nothing to sums."""
    if len(ctx.params["dtypes"]) > 1:
        last = len(blocks) - 1
        tokens = range(len(ctx.in_shape(last)))
        x, w, *rest, ct = blocks
        blocks = (ctx.mask(x, 0, tokens, 0), ctx.mask(w, 1, (0,), 0), *rest, ctx.mask(ct, last, tokens, 0))
    return _run(ctx, primitive.gradients_on, blocks)


def _run(ctx: Context, run, blocks):
    linear = ctx.eqn.primitive.name.startswith("linear")
    operand, dim = (1, 0) if linear else (0, len(ctx.in_shape(0)) - 1)
    axes = ctx.in_axes(operand, dim)
    if not axes:
        return ctx.bind(*blocks)
    first, count = ctx.in_part(operand, dim)
    total = ctx.in_shape(operand)[dim]
    if even_split.even(total, tuple(ctx.here.sizes[a] for a in axes)):
        count = None
    classes = Classes(first, count, total, ctx.names(axes))

    def on(platform: str):
        return lambda *blocks: run(*blocks, platform=platform, classes=classes, **ctx.params)

    return jax.lax.platform_dependent(*blocks, cpu=on("cpu"), default=on(""))
