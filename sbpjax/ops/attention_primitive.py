"""Attention as one equation of a program: three primitives, and which kernel they become.

    attention          q, k, v [, mask]                    → out, lse
    attention_grad     q, k, v, out, lse [, mask], ct      → dq, dk, dv [, dmask]
    attention_tangent  q, k, v, out, lse [, mask], tangents of q, k, v [, mask] → tangents of out and lse

A backward is the transpose of `attention_tangent`, which is linear: one `attention_grad`. Its kernels return nothing
that can be differentiated again, so the second derivative goes by the formula with all scores, and so does a
forward-mode derivative. A batch dim is one more leading dim.

What runs is chosen where the program is lowered, by platform and shape: `attention_blocks` everywhere, JAX's splash
attention on TPU (`attention_tpu`), cuDNN's on NVIDIA's GPUs (`attention_gpu`). Shapes and masks as in
`sbpjax.ops.attention_blocks`.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.interpreters import ad, batching

from sbpjax.world.jaxprs import Primitive

from . import attention_blocks, attention_gpu, attention_tpu
from .own_primitives import by_formula, register
from .promote import BOOL, compute_dtype

attention_p, attention_grad_p, attention_tangent_p = (
    Primitive(name) for name in ("attention", "attention_grad", "attention_tangent")
)
_PRIMITIVES = (attention_p, attention_grad_p, attention_tangent_p)


def attention(q, k, v, mask=None, *, scale: float, causal: bool, kernel: str = "auto"):
    """Return attention as one equation, differentiable.

    Args:
        q: ``(*lead, G, T, D)``.
        k: ``(*lead, S, D)``.
        v: ``(*lead, S, Dv)``.
        mask: None, or bools or numbers of q's rank, ``(*lead, G, T, S)`` with dims of size 1 where it is broadcast.
        scale: factor of the scores.
        causal: whether query t reads keys 0 to t only.
        kernel: ``"auto"``, ``"blocks"``, or ``"splash"`` or ``"cudnn"``, which take the blocks' place where they can.
    """
    operands = (q, k, v) if mask is None else (q, k, v, mask)
    return attention_p.bind(*operands, scale=float(scale), causal=bool(causal), kernel=kernel)[0]


# --- shapes ----------------------------------------------------------------------------------------------------------


def _shapes(q, k, v, *mask, scale, causal, kernel):
    return [ShapedArray((*q.shape[:-1], v.shape[-1]), q.dtype), ShapedArray(q.shape[:-1], compute_dtype(q.dtype))]


def _grad_shapes(q, k, v, out, lse, *rest, scale, causal, kernel, mask_grad):
    like = (q, k, v, rest[0]) if mask_grad else (q, k, v)
    return [ShapedArray(x.shape, x.dtype) for x in like]


def _tangent_shapes(q, k, v, out, lse, *rest, scale, causal, kernel, masked, mask_grad):
    return [ShapedArray(x.shape, x.dtype) for x in (out, lse)]


# --- derivatives -----------------------------------------------------------------------------------------------------


def _scores(q, k, mask, scale: float, causal: bool):
    """Return all scores ``(*lead, G, T, S)``; those that are hidden are minus infinity."""
    wide = compute_dtype(q.dtype)
    s = _pairs(q.astype(wide) * np.asarray(scale, wide), k.astype(wide))
    if causal:
        row, key = (lax.broadcasted_iota(np.int32, s.shape, s.ndim + d) for d in (-2, -1))
        s = jnp.where(row >= key, s, -np.inf)
    if mask is None:
        return s
    return jnp.where(mask, s, -np.inf) if mask.dtype == BOOL else s + mask.astype(wide)


def _pairs(x, y):
    """Return the products of ``(*lead, G, T, D)`` with each of ``(*lead, S, D)``: ``(*lead, G, T, S)``."""
    return jnp.einsum("...gtd,...sd->...gts", x, y)


def _tangents(q, k, v, out, lse, *rest, scale, causal, kernel, masked, mask_grad):
    mask, rest = (rest[0], rest[1:]) if masked else (None, rest)
    wide = compute_dtype(q.dtype)
    w, by = (x.astype(wide) for x in (v, out)), np.asarray(scale, wide)
    v, out = w
    tq, tk, tv = (x.astype(wide) for x in rest[:3])
    p = jnp.exp(_scores(q, k, mask, scale, causal) - lse[..., None])
    ts = (_pairs(tq, k.astype(wide)) + _pairs(q.astype(wide), tk)) * by
    if mask_grad:
        ts = ts + rest[3].astype(wide)
    moved = p * ts
    tlse = moved.sum(-1)
    tout = jnp.einsum("...gts,...sd->...gtd", moved, v) + jnp.einsum("...gts,...sd->...gtd", p, tv)
    return [(tout - out * tlse[..., None]).astype(q.dtype), tlse]


def _gradients(q, k, v, out, lse, *rest, scale, causal, kernel, mask_grad):
    """Return what `attention_grad` does, with all scores: this one can be differentiated."""
    *mask, ct = rest
    wide = compute_dtype(q.dtype)
    p = jnp.exp(_scores(q, k, mask[0] if mask else None, scale, causal) - lse[..., None])
    ct = ct.astype(wide)
    delta = (ct * out.astype(wide)).sum(-1, keepdims=True)
    ds = p * (_pairs(ct, v.astype(wide)) - delta)
    by = np.asarray(scale, wide)
    dq = jnp.einsum("...gts,...sd->...gtd", ds, k.astype(wide)) * by
    dk = jnp.einsum("...gts,...gtd->...sd", ds, q.astype(wide)) * by
    dv = jnp.einsum("...gts,...gtd->...sd", p, ct)
    grads = [x.astype(y.dtype) for x, y in ((dq, q), (dk, k), (dv, v))]
    if mask_grad:
        axes = tuple(d for d in range(ds.ndim) if mask[0].shape[d] == 1 < ds.shape[d])
        grads.append(ds.sum(axes, keepdims=True).astype(mask[0].dtype))
    return grads


def _jvp(primals, tangents, **params):
    out, lse = attention_p.bind(*primals, **params)
    mask_grad = len(tangents) > 3 and type(tangents[3]) is not ad.Zero
    wanted = [ad.instantiate_zeros(t) for t in (tangents if mask_grad else tangents[:3])]
    masked = len(primals) > 3
    operands = (*primals[:3], out, lse, *primals[3:], *wanted)
    return [out, lse], attention_tangent_p.bind(*operands, masked=masked, mask_grad=mask_grad, **params)


def _transpose(cts, *operands, masked, mask_grad, **params):
    known, tangents = operands[: 5 + masked], operands[5 + masked :]
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
ad.primitive_jvps[attention_grad_p] = by_formula(_gradients, attention_grad_p)
ad.primitive_jvps[attention_tangent_p] = by_formula(_tangents, attention_tangent_p)
ad.primitive_transposes[attention_tangent_p] = _transpose


# --- batching --------------------------------------------------------------------------------------------------------


def _batched(primitive, mask_at: int, without_mask: int):
    """Return the batching rule of a primitive, where its mask stands, and how many operands it has without one."""

    def rule(operands, dims, **params):
        (size,) = {x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None}
        masked = params.get("masked", len(operands) > without_mask)
        moved = []
        for i, (x, d) in enumerate(zip(operands, dims, strict=True)):
            # One mask may serve all, unless each is to get a gradient of its own.
            one = masked and i == mask_at and not params.get("mask_grad")
            moved.append(
                jnp.broadcast_to(x[None], (1 if one else size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
            )
        outs = primitive.bind(*moved, **params)
        return outs, [0] * len(outs)

    return rule


batching.primitive_batchers[attention_p] = _batched(attention_p, 3, 3)
batching.primitive_batchers[attention_grad_p] = _batched(attention_grad_p, 5, 6)
batching.primitive_batchers[attention_tangent_p] = _batched(attention_tangent_p, 5, 8)


# --- kernels ---------------------------------------------------------------------------------------------------------


def _kernels(platform: str) -> tuple:
    return {"tpu": (attention_tpu,), "cuda": (attention_gpu,)}.get(platform, ())


def _forward(q, k, v, *mask, scale, causal, kernel, platform):
    one = mask[0] if mask else None
    for module in _kernels(platform):
        if kernel in ("auto", module.NAME) and module.takes(q, k, v, one, causal):
            return module.forward(q, k, v, one, scale=scale, causal=causal)
    return attention_blocks.forward(q, k, v, one, scale=scale, causal=causal, one_by_one=platform == "cpu")


def _backward(q, k, v, out, lse, *rest, scale, causal, kernel, mask_grad, platform):
    *mask, ct = rest
    one = mask[0] if mask else None
    for module in _kernels(platform):
        if kernel in ("auto", module.NAME) and module.takes(q, k, v, one, causal) and not mask_grad:
            return module.backward(q, k, v, one, out, lse, ct, scale=scale, causal=causal)
    run = functools.partial(attention_blocks.backward, one_by_one=platform == "cpu")
    return run(q, k, v, one, out, lse, ct, scale=scale, causal=causal, mask_grad=mask_grad)


def _tangents_on(*operands, platform, **params):
    return _tangents(*operands, **params)


_RUN = {attention_p: _forward, attention_grad_p: _backward, attention_tangent_p: _tangents_on}
_SHAPES = {attention_p: _shapes, attention_grad_p: _grad_shapes, attention_tangent_p: _tangent_shapes}


for _primitive in _PRIMITIVES:
    register(_primitive, _SHAPES[_primitive], _RUN[_primitive])


def flops(eqn) -> float:
    """Return the multiply-adds of the equation, counted twice each: two products forward, five backward."""
    q, _, v = (x.aval.shape for x in eqn.invars[:3])
    keys = eqn.invars[1].aval.shape[-2]
    pairs = math.prod(q[:-1]) * keys * (0.5 if eqn.params["causal"] else 1.0)
    here, there = {"attention": (1, 1), "attention_grad": (3, 2), "attention_tangent": (3, 2)}[eqn.primitive.name]
    return 2.0 * pairs * (here * q[-1] + there * v[-1])
