"""Cross entropy primitives: of logits, and fused with the linear layer before it.

    cross_entropy                logits, target                  → losses
    linear_cross_entropy         x, w [, bias], target           → losses
    …_grad                       the same, ct                    → losses, gradients of those that are wanted
    …_tangent                    the same, tangents              → tangent of the losses

A backward is the transpose of the tangent, which is linear: one ``_grad``. It returns the losses too: where it can take
the forward's place, both are computed at once (`_core.programs.fused_losses`). Other derivatives, and those of
``_grad``, go by the formula with all logits. `linear_cross_entropy` is computed in chunks.

Logits are ``(*lead, V)``, targets ``(*lead)``; the rest is as in `_core.ops.losses.linear_cross_entropy`.
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

from ..own_primitives import jvp_from_formula, register
from ..promote import compute_dtype
from . import linear_cross_entropy as in_chunks
from .linear_cross_entropy import Classes, Loss, Rows, logits_of

cross_entropy_p, cross_entropy_grad_p, cross_entropy_tangent_p = (
    Primitive(f"cross_entropy{kind}") for kind in ("", "_grad", "_tangent")
)
linear_cross_entropy_p, linear_cross_entropy_grad_p, linear_cross_entropy_tangent_p = (
    Primitive(f"linear_cross_entropy{kind}") for kind in ("", "_grad", "_tangent")
)


def cross_entropy(logits, target, *, smoothing: float = 0.0, ignore_index: int = -100):
    """Return the losses ``(*lead)`` of logits ``(*lead, V)`` as one equation, in the wide dtype; 0 where ignored."""
    how = {"smoothing": float(smoothing), "z_loss": 0.0, "ignore_index": int(ignore_index), "precision": None}
    return cross_entropy_p.bind(logits, target, **how)[0]


def linear_cross_entropy(
    x, w, bias, target, *, smoothing: float = 0.0, z_loss: float = 0.0, ignore_index: int = -100, precision=None
):
    """Return the losses ``(*lead)`` of the logits ``x wᵀ + bias`` as one equation, in the wide dtype; 0 where ignored.

    Args:
        x: ``(*lead, D)``.
        w: ``(V, D)``.
        bias: ``(V,)`` or None.
        target: integers ``(*lead)``.
        smoothing: share of the uniform distribution in the target.
        z_loss: factor of the squared logarithm of the sum of exponentials.
        ignore_index: the target of a token that does not count.
        precision: of the products.
    """
    how = {"smoothing": float(smoothing), "z_loss": float(z_loss), "ignore_index": int(ignore_index)}
    operands = (x, w, target) if bias is None else (x, w, bias, target)
    return linear_cross_entropy_p.bind(*operands, **how, precision=precision)[0]


# --- formulas, with all logits ---------------------------------------------------------------------------------------


def _losses(*operands, precision, **loss):
    *floats, target = operands
    logits = floats[0].astype(compute_dtype(floats[0].dtype))
    if len(floats) > 1:
        x, w, *bias = floats
        logits = logits_of(x, w, bias[0] if bias else None, precision)
    rows = Rows(logits.reshape(-1, logits.shape[-1]), target.reshape(-1), Loss(**loss), None)
    return [rows.losses().reshape(target.shape)]


def _gradients(*operands, dtypes, **how):
    """Return the results of ``_grad`` by a formula that can be differentiated."""
    *floats, target, ct = operands
    (losses,), back = jax.vjp(lambda *floats: _losses(*floats, target, **how), *floats)
    grads = back([ct.astype(losses.dtype)])
    return [losses, *(g.astype(d) for g, d in zip(grads, dtypes, strict=True) if d is not None)]


def _tangents(*operands, wanted, **how):
    count = len(operands) - len(wanted)
    *floats, target = operands[:count]
    given = dict(zip(wanted, operands[count:], strict=True))
    tangents = [given.get(i, jnp.zeros_like(x)) for i, x in enumerate(floats)]
    return jax.jvp(lambda *floats: _losses(*floats, target, **how), tuple(floats), tuple(tangents))[1]


# --- shapes and derivatives ------------------------------------------------------------------------------------------


def _shapes(*operands, **how):
    return [ShapedArray(operands[0].shape[:-1], compute_dtype(operands[0].dtype))]


def _grad_shapes(*operands, dtypes, **how):
    grads = [ShapedArray(x.shape, np.dtype(d)) for x, d in zip(operands, dtypes) if d is not None]
    return [*_shapes(*operands), *grads]


def _derive(primitive, grad, tangent) -> None:
    """Give a primitive, its gradient and its tangent their derivatives."""

    def jvp(primals, tangents, **how):
        outs = primitive.bind(*primals, **how)
        wanted = tuple(i for i, t in enumerate(tangents[:-1]) if type(t) is not ad.Zero)
        if not wanted:
            return outs, [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in outs]
        moved = [ad.instantiate_zeros(tangents[i]) for i in wanted]
        return outs, tangent.bind(*primals, *moved, wanted=wanted, **how)

    def transpose(cts, *operands, wanted, **how):
        count = len(operands) - len(wanted)
        known, tangents = operands[:count], operands[count:]
        requested = [i for i, t in zip(wanted, tangents, strict=True) if ad.is_undefined_primal(t)]
        if type(cts[0]) is ad.Zero:
            found = iter([ad.Zero(known[i].aval) for i in requested])
        else:
            dtypes = tuple(known[i].dtype if i in requested else None for i in range(count - 1))
            found = iter(grad.bind(*known, cts[0], dtypes=dtypes, **how)[1:])
        return [*[None] * count, *(next(found) if ad.is_undefined_primal(t) else None for t in tangents)]

    ad.primitive_jvps[primitive] = jvp
    ad.primitive_jvps[grad] = jvp_from_formula(_gradients, grad)
    ad.primitive_jvps[tangent] = jvp_from_formula(_tangents, tangent)
    ad.primitive_transposes[tangent] = transpose


_derive(cross_entropy_p, cross_entropy_grad_p, cross_entropy_tangent_p)
_derive(linear_cross_entropy_p, linear_cross_entropy_grad_p, linear_cross_entropy_tangent_p)


# --- batching --------------------------------------------------------------------------------------------------------


def _batching_rule(primitive):
    def rule(operands, dims, **params):
        (size,) = {x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None}
        shared = shared_operands(primitive.name, len(operands), params)
        dtypes = params.get("dtypes", ())
        own = any(d is not None for i, d in enumerate(dims) if i in shared)
        if not own and all(d is None for i, d in enumerate(dtypes) if i in shared):
            rows = (i for i in range(len(operands)) if i not in shared)
            operands = list(operands)
            for i in rows:
                x, d = operands[i], dims[i]
                operands[i] = jnp.broadcast_to(x[None], (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
            outs = primitive.bind(*operands, **params)
        else:  # weights of their own, or their gradients, for each of the batch: one after the other
            moved = [jnp.moveaxis(x, d, 0) for x, d in zip(operands, dims, strict=True) if d is not None]

            def one(given):
                rest = iter(given)
                return primitive.bind(
                    *(x if d is None else next(rest) for x, d in zip(operands, dims, strict=True)), **params
                )

            outs = lax.map(one, moved)
        return outs, [0] * len(outs)

    return rule


def shared_operands(name: str, count: int, params) -> set[int]:
    """Return the operands that all tokens share, weights and bias and their tangents; others have a row per token.

    Args:
        name: of the primitive.
        count: of its operands.
        params: its parameters.
    """
    if not name.startswith("linear"):
        return set()
    wanted = params.get("wanted", ())
    floats = count - 1 - len(wanted) - ("dtypes" in params)
    return {*range(1, floats), *(floats + 1 + n for n, i in enumerate(wanted) if i)}


# --- lowering --------------------------------------------------------------------------------------------------------


def losses_on(*operands, platform, classes: Classes | None = None, precision, **loss):
    """Return the results of the equation on a platform; of some of the classes, if they are divided over ranks."""
    *floats, target = operands
    if len(floats) == 1:
        return [_rows(floats[0], target, loss, classes).losses().reshape(target.shape)]
    x, w, *bias = floats
    how = {"classes": classes, "precision": precision, "on_cpu": platform == "cpu"}
    return [in_chunks.losses(x, w, bias[0] if bias else None, target, Loss(**loss), **how)]


def gradients_on(*operands, dtypes, platform, classes: Classes | None = None, precision, **loss):
    """Return the results of the equation of the gradient, as `losses_on`."""
    *floats, target, ct = operands
    if len(floats) == 1:
        rows = _rows(floats[0], target, loss, classes)
        losses, grad = rows.losses().reshape(target.shape), rows.gradient(ct.reshape(-1)).reshape(floats[0].shape)
        return [losses, *(grad.astype(d) for d in dtypes if d is not None)]
    x, w, *bias = floats
    how = {"classes": classes, "precision": precision, "on_cpu": platform == "cpu"}
    kinds = (*dtypes, None)[:3]
    losses, *grads = in_chunks.gradients(x, w, bias[0] if bias else None, target, ct, Loss(**loss), kinds, **how)
    return [losses, *(g for g in grads if g is not None)]


def _rows(logits, target, loss, classes) -> Rows:
    flat = logits.astype(compute_dtype(logits.dtype)).reshape(-1, logits.shape[-1])
    return Rows(flat, target.reshape(-1), Loss(**loss), classes)


def _tangents_on(*operands, platform, **params):
    return _tangents(*operands, **params)


for _primitives in (
    (cross_entropy_p, cross_entropy_grad_p, cross_entropy_tangent_p),
    (linear_cross_entropy_p, linear_cross_entropy_grad_p, linear_cross_entropy_tangent_p),
):
    _kinds = ((_shapes, losses_on), (_grad_shapes, gradients_on), (_shapes, _tangents_on))
    for _primitive, (_of, _run) in zip(_primitives, _kinds, strict=True):
        register(_primitive, _of, _run)
        batching.primitive_batchers[_primitive] = _batching_rule(_primitive)


def flops(eqn) -> float:
    """Return the multiply-adds of the equation's products, counted twice each: one forward, one more per gradient."""
    name = eqn.primitive.name
    if not name.startswith("linear"):
        return 0.0
    x, w = (v.aval.shape for v in eqn.invars[:2])
    products = 1 + sum(d is not None for d in eqn.params.get("dtypes", ())[:2]) + len(eqn.params.get("wanted", ()))
    return 2.0 * products * math.prod(x) * w[0]
