"""Attention primitives: forward, gradient and tangent, with the choice of a kernel per platform.

    attention          q, k, v, extras                     → out, lse
    attention_grad     q, k, v, out, lse, extras, ct       → dq, dk, dv [, dmask]
    attention_tangent  q, k, v, out, lse, extras, tangents of q, k, v [, mask] → tangents of out and lse

Extras are a mask, if there is one, and segments of queries and of keys, if `segmented`.

A backward is the transpose of `attention_tangent`, which is linear: one `attention_grad`. Its kernels return nothing
that can be differentiated again, so the second derivative goes by the formula with all scores, and so does a
forward-mode derivative. A batch dim is one more leading dim.

The kernel is chosen at lowering, by platform and shape: `attention_blocks` everywhere, JAX's splash
attention on TPU (`attention_tpu`), cuDNN's on NVIDIA's GPUs (`attention_gpu`). Shapes and masks as in
`_core.ops.attention.blocks`.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.interpreters import ad, batching

from sbpjax._core.jax_private import Primitive, prim_requires_devices_during_lowering

from ..own_primitives import jvp_from_formula, register
from ..promote import BOOL, compute_dtype
from . import blocks as attention_blocks
from . import gpu as attention_gpu
from . import tpu as attention_tpu
from .scores import Scores, in_window

attention_p, attention_grad_p, attention_tangent_p = (
    Primitive(name) for name in ("attention", "attention_grad", "attention_tangent")
)
_PRIMITIVES = (attention_p, attention_grad_p, attention_tangent_p)


def attention(q, k, v, mask=None, segments=None, *, how: Scores, kernel: str = "auto", across: tuple = ()):
    """Return attention as one equation, differentiable.

    Args:
        q: ``(*lead, G, T, D)``.
        k: ``(*lead, S, D)``.
        v: ``(*lead, S, Dv)``.
        mask: None, or bools or numbers of q's rank, ``(*lead, G, T, S)`` with dims of size 1 where it is broadcast.
        segments: None, or integers ``(*lead, T)`` and ``(*lead, S)``, likewise; a query reads the keys with its number.
        how: how the scores are made.
        kernel: ``"auto"``, ``"blocks"``, or ``"splash"`` or ``"cudnn"``, which take the blocks' place where they can.
        across: for every axis of the mesh ``"ring"``, ``"heads"``, or ``""``: how it divides this; see the rules.
    """
    operands = (q, k, v, *(() if mask is None else (mask,)), *(segments or ()))
    return attention_p.bind(*operands, how=how, segmented=segments is not None, kernel=kernel, across=across)[0]


def mask_and_segments(extras, segmented: bool) -> tuple[Any, tuple[Any, Any] | None]:
    """Return the mask and the segments among the extras of an equation; None for a missing one."""
    rest, segments = (extras[:-2], tuple(extras[-2:])) if segmented else (extras, None)
    return rest[0] if rest else None, segments


# --- shapes ----------------------------------------------------------------------------------------------------------


def _shapes(q, k, v, *extras, how, segmented, kernel, across):
    return [ShapedArray((*q.shape[:-1], v.shape[-1]), q.dtype), ShapedArray(q.shape[:-1], compute_dtype(q.dtype))]


def _grad_shapes(q, k, v, out, lse, *rest, how, segmented, kernel, across, mask_grad):
    like = (q, k, v, rest[0]) if mask_grad else (q, k, v)
    return [ShapedArray(x.shape, x.dtype) for x in like]


def _tangent_shapes(q, k, v, out, lse, *rest, how, segmented, kernel, across, masked, mask_grad):
    return [ShapedArray(x.shape, x.dtype) for x in (out, lse)]


# --- derivatives -----------------------------------------------------------------------------------------------------


def _scores(q, k, mask, segments, how: Scores):
    """Return all scores ``(*lead, G, T, S)``, hidden ones minus infinity, and the slope of their cap or None."""
    wide = compute_dtype(q.dtype)
    s, slope = how.cap_scores(_pairs(q.astype(wide) * np.asarray(how.scale, wide), k.astype(wide)))
    row, key = (lax.broadcasted_iota(np.int32, s.shape, s.ndim + d) for d in (-2, -1))
    keeps = [in_window(row, key, how.window)]
    if segments is not None:
        keeps.append(segments[0][..., None, :, None] == segments[1][..., None, None, :])
    if mask is not None and mask.dtype == BOOL:
        keeps.append(mask)
    elif mask is not None:
        s = s + mask.astype(wide)
    for keep in keeps:
        s = s if keep is None else jnp.where(keep, s, -np.inf)
    return s, slope


def _pairs(x, y):
    """Return the products of ``(*lead, G, T, D)`` with each of ``(*lead, S, D)``: ``(*lead, G, T, S)``."""
    return jnp.einsum("...gtd,...sd->...gts", x, y)


def _tangents(q, k, v, out, lse, *rest, how, segmented, kernel, across, masked, mask_grad):
    extras, rest = rest[: masked + 2 * segmented], rest[masked + 2 * segmented :]
    wide = compute_dtype(q.dtype)
    w, by = (x.astype(wide) for x in (v, out)), np.asarray(how.scale, wide)
    v, out = w
    tq, tk, tv = (x.astype(wide) for x in rest[:3])
    s, slope = _scores(q, k, *mask_and_segments(extras, segmented), how)
    p = jnp.exp(s - lse[..., None])
    ts = (_pairs(tq, k.astype(wide)) + _pairs(q.astype(wide), tk)) * by
    ts = ts if slope is None else ts * slope
    if mask_grad:
        ts = ts + rest[3].astype(wide)
    moved = p * ts
    tlse = moved.sum(-1)
    tout = jnp.einsum("...gts,...sd->...gtd", moved, v) + jnp.einsum("...gts,...sd->...gtd", p, tv)
    return [(tout - out * tlse[..., None]).astype(q.dtype), tlse]


def _gradients(q, k, v, out, lse, *rest, how, segmented, kernel, across, mask_grad):
    """Return the results of `attention_grad`, with all scores: this one can be differentiated."""
    *extras, ct = rest
    mask, segments = mask_and_segments(extras, segmented)
    wide = compute_dtype(q.dtype)
    s, slope = _scores(q, k, mask, segments, how)
    p = jnp.exp(s - lse[..., None])
    ct = ct.astype(wide)
    delta = (ct * out.astype(wide)).sum(-1, keepdims=True)
    dbias = p * (_pairs(ct, v.astype(wide)) - delta)
    ds = dbias if slope is None else dbias * slope
    by = np.asarray(how.scale, wide)
    dq = jnp.einsum("...gts,...sd->...gtd", ds, k.astype(wide)) * by
    dk = jnp.einsum("...gts,...gtd->...sd", ds, q.astype(wide)) * by
    dv = jnp.einsum("...gts,...gtd->...sd", p, ct)
    grads = [x.astype(y.dtype) for x, y in ((dq, q), (dk, k), (dv, v))]
    if mask_grad:
        axes = tuple(d for d in range(ds.ndim) if mask.shape[d] == 1 < ds.shape[d])
        grads.append(dbias.sum(axes, keepdims=True).astype(mask.dtype))
    return grads


def _jvp(primals, tangents, **params):
    out, lse = attention_p.bind(*primals, **params)
    masked = len(primals) > 3 + 2 * params["segmented"]
    mask_grad = masked and type(tangents[3]) is not ad.Zero
    wanted = [ad.instantiate_zeros(t) for t in tangents[: 3 + mask_grad]]
    operands = (*primals[:3], out, lse, *primals[3:], *wanted)
    return [out, lse], attention_tangent_p.bind(*operands, masked=masked, mask_grad=mask_grad, **params)


def _transpose(cts, *operands, masked, mask_grad, **params):
    count = 5 + masked + 2 * params["segmented"]
    known, tangents = operands[:count], operands[count:]
    ct, ct_lse = cts
    if type(ct) is ad.Zero and type(ct_lse) is ad.Zero:
        grads = [ad.Zero(t.aval) for t in tangents if ad.is_undefined_primal(t)]
    elif type(ct_lse) is ad.Zero:
        found = attention_grad_p.bind(*known, ct, mask_grad=mask_grad, **params)
        grads = [x for x, t in zip(found, tangents, strict=True) if ad.is_undefined_primal(t)]
    else:  # of a second derivative: the lse too has a gradient
        places = [i for i, t in enumerate(tangents) if ad.is_undefined_primal(t)]

        def linear(*wanted):
            merged = [jnp.zeros(t.aval.shape, t.aval.dtype) if i in places else t for i, t in enumerate(tangents)]
            for i, x in zip(places, wanted, strict=True):
                merged[i] = x
            return _tangents(*known, *merged, masked=masked, mask_grad=mask_grad, **params)

        structs = [jax.ShapeDtypeStruct(tangents[i].aval.shape, tangents[i].aval.dtype) for i in places]
        grads = jax.linear_transpose(linear, *structs)([ad.instantiate_zeros(ct), ad.instantiate_zeros(ct_lse)])
    found = iter(grads)
    return [*[None] * len(known), *[next(found) if ad.is_undefined_primal(t) else None for t in tangents]]


ad.primitive_jvps[attention_p] = _jvp
ad.primitive_jvps[attention_grad_p] = jvp_from_formula(_gradients, attention_grad_p)
ad.primitive_jvps[attention_tangent_p] = jvp_from_formula(_tangents, attention_tangent_p)
ad.primitive_transposes[attention_tangent_p] = _transpose


# --- batching --------------------------------------------------------------------------------------------------------


def _batching_rule(primitive, extras_at: int, without_extras: int):
    """Return the batching rule of a primitive, the position of its extras, and the number of operands without them."""

    def rule(operands, dims, *, segmented, **params):
        (size,) = {x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None}
        masked = params.get("masked", len(operands) > without_extras + 2 * segmented)
        # One mask and one segment may serve all, unless each mask is to get a gradient of its own.
        shared = set(range(extras_at + bool(params.get("mask_grad")), extras_at + masked + 2 * segmented))
        moved = []
        for i, (x, d) in enumerate(zip(operands, dims, strict=True)):
            if d is None:
                moved.append(jnp.broadcast_to(x[None], (1 if i in shared else size, *x.shape)))
            else:
                moved.append(jnp.moveaxis(x, d, 0))
        outs = primitive.bind(*moved, segmented=segmented, **params)
        return outs, [0] * len(outs)

    return rule


batching.primitive_batchers[attention_p] = _batching_rule(attention_p, 3, 3)
batching.primitive_batchers[attention_grad_p] = _batching_rule(attention_grad_p, 5, 6)
batching.primitive_batchers[attention_tangent_p] = _batching_rule(attention_tangent_p, 5, 8)


# --- kernels ---------------------------------------------------------------------------------------------------------


def _kernels(platform: str) -> tuple:
    return {"tpu": (attention_tpu,), "cuda": (attention_gpu,)}.get(platform, ())


def _module(platform: str, kernel: str, *problem):
    """Return the module of a kernel that takes a problem on a platform, or None: blocks."""
    for module in _kernels(platform):
        if kernel in ("auto", module.NAME) and module.unsupported_reason(*problem) is None:
            return module
    return None


def choice(eqn, platform: str) -> str:
    """Return the kernel of an attention equation on a platform, and the reason if it is not the platform's own.

    Example:
        ``"blocks: cuDNN has no soft cap"``
    """
    q, k, v, *rest = (v.aval for v in eqn.invars)
    kernel, backward = eqn.params["kernel"], eqn.primitive is attention_grad_p
    extras = rest[2:-1] if backward else rest
    problem = (q, k, v, *mask_and_segments(extras, eqn.params["segmented"]), eqn.params["how"])
    reasons = []
    for module in _kernels(platform):
        if kernel not in ("auto", module.NAME):
            reasons.append(f"{kernel} is requested")
        elif backward and eqn.params["mask_grad"]:
            reasons.append(f"{module.NAME} gives no gradient of a mask")
        elif reason := module.unsupported_reason(*problem):
            reasons.append(reason)
        else:
            return module.NAME
    return ": ".join(["blocks", *reasons])


def _forward(q, k, v, *extras, how, segmented, kernel, across, platform):
    problem = (q, k, v, *mask_and_segments(extras, segmented), how)
    if module := _module(platform, kernel, *problem):
        return module.forward(*problem)
    return attention_blocks.forward(*problem, one_by_one=platform == "cpu")


def _backward(q, k, v, out, lse, *rest, how, segmented, kernel, across, mask_grad, platform):
    *extras, ct = rest
    problem = (q, k, v, *mask_and_segments(extras, segmented), how)
    if not mask_grad and (module := _module(platform, kernel, *problem)):
        return module.backward(*problem, out, lse, ct)
    return attention_blocks.backward(*problem, out, lse, ct, mask_grad=mask_grad, one_by_one=platform == "cpu")


def _tangents_on(*operands, platform, **params):
    return _tangents(*operands, **params)


_RUN = {attention_p: _forward, attention_grad_p: _backward, attention_tangent_p: _tangents_on}
_SHAPES = {attention_p: _shapes, attention_grad_p: _grad_shapes, attention_tangent_p: _tangent_shapes}


for _primitive in _PRIMITIVES:
    register(_primitive, _SHAPES[_primitive], _RUN[_primitive])
    # cuDNN's calls are custom partitionings, whose lowering needs the devices. JAX passes them only to programs with a
    # primitive of this set, and cuDNN's appear when ours are lowered.
    prim_requires_devices_during_lowering.add(_primitive)


def flops(eqn) -> float:
    """Return the multiply-adds of the equation, counted twice each: two products forward, five backward."""
    q, _, v = (x.aval.shape for x in eqn.invars[:3])
    keys = eqn.invars[1].aval.shape[-2]
    pairs = math.prod(q[:-1]) * keys * eqn.params["how"].share(keys)
    here, there = {"attention": (1, 1), "attention_grad": (3, 2), "attention_tangent": (3, 2)}[eqn.primitive.name]
    return 2.0 * pairs * (here * q[-1] + there * v[-1])
