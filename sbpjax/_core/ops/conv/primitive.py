"""Convolution primitives: grouped, pointwise and large-kernel convolutions with their gradients.

A convolution y of images x with kernels w is linear in both, and so are its gradients. The three are one primitive,
named by their results:

    output    x, w → y     y[n, o, p] = Σ x[n, c, s p + d k] w[o, c, k]      over k, and the channels c of o's group
    input     y, w → x     the gradient of <y, output(x, w)> with respect to x
    kernel    x, y → w     and with respect to w

so that the derivatives of each are the others. XLA has one operation for all of them, with `feature_group_count` or
`batch_group_count`, and GPU and TPU get that. XLA:CPU has only plain loops for groups, and turns kernels and images
round before each convolution, which takes longer than one of one pixel or of few; there they run in other forms
(`_core.ops.conv.cpu`). The output is a composite operation of StableHLO then, so that readers of an exported program
still see a convolution.

x is ``(N, C, ...)``, w ``(O, C / groups, ...)``, y ``(N, O, ...)``.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.interpreters import ad, batching

from sbpjax._core.jax_private import Primitive

from ..own_primitives import register
from . import cpu as conv_cpu
from .products import sizes

convolution_p = Primitive("convolution")

COMPOSITE = "sbpjax.convolution"

# The operands of each kind.
READS = {"output": ("input", "kernel"), "input": ("output", "kernel"), "kernel": ("input", "output")}


def convolution(x, w, *, strides, padding, dilation, groups: int):
    """Return the convolution of images with kernels.

    Args:
        x: ``(N, C, ...)``, real floats.
        w: ``(O, C / groups, ...)``, of x's dtype.
        strides: one per spatial dim.
        padding: pairs, one per spatial dim.
        dilation: of the kernel, one per spatial dim.
        groups: divides C and O.
    """
    how = {
        "strides": tuple(strides),
        "padding": tuple(map(tuple, padding)),
        "dilation": tuple(dilation),
        "groups": groups,
        "image": tuple(x.shape[2:]),
        "window": tuple(w.shape[2:]),
    }
    return convolution_p.bind(x, w, kind="output", **how, preferred_element_type=None)[0]


# --- shapes and derivatives ------------------------------------------------------------------------------------------


def _shapes(a, b, **p):
    kind, groups = p["kind"], p["groups"]
    if kind == "output":
        shape = (a.shape[0], b.shape[0], *sizes(p))
    elif kind == "input":
        shape = (a.shape[0], b.shape[1] * groups, *p["image"])
    else:
        shape = (b.shape[1], a.shape[1] // groups, *p["window"])
    return [ShapedArray(shape, p["preferred_element_type"] or a.dtype)]


def _jvp(primals, tangents, **p):
    terms = [
        convolution_p.bind(*(t if i == j else x for j, x in enumerate(primals)), **p)[0]
        for i, t in enumerate(tangents)
        if type(t) is not ad.Zero
    ]
    return convolution_p.bind(*primals, **p), [sum(terms[1:], terms[0])]


def _transpose(cts, *operands, **p):
    (ct,), names = cts, READS[p["kind"]]
    (i,) = (i for i, x in enumerate(operands) if ad.is_undefined_primal(x))
    aval = operands[i].aval
    found: list = [None, None]
    if type(ct) is ad.Zero:
        found[i] = ad.Zero(aval)
        return found
    there = {p["kind"]: ct.astype(aval.dtype), names[1 - i]: operands[1 - i]}
    pair = [there[name] for name in READS[names[i]]]
    (found[i],) = convolution_p.bind(*pair, **{**p, "kind": names[i], "preferred_element_type": None})
    return found


ad.primitive_jvps[convolution_p] = _jvp
ad.primitive_transposes[convolution_p] = _transpose


# A batch dim precedes a dim: of images and outputs their channels, of kernels their outputs.
_JOINED = {"input": 1, "output": 1, "kernel": 0}


def _batch_conv(operands, dims, **p):
    """Take a batch as more images where all have the same kernels, else as more groups."""
    kind = p["kind"]
    (size,) = {x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None}
    whole = [
        jnp.broadcast_to(x, (size, *x.shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(operands, dims, strict=True)
    ]
    if kind != "kernel" and dims[1] is None:
        (out,) = convolution_p.bind(whole[0].reshape(-1, *whole[0].shape[2:]), operands[1], **p)
        return [out.reshape(size, -1, *out.shape[1:])], [0]
    joined = []
    for x, name in zip(whole, READS[kind], strict=True):
        d = _JOINED[name]
        joined.append(jnp.moveaxis(x, 0, d).reshape(*x.shape[1 : 1 + d], -1, *x.shape[2 + d :]))
    (out,) = convolution_p.bind(*joined, **{**p, "groups": p["groups"] * size})
    d = _JOINED[kind]
    return [out.reshape(*out.shape[:d], size, -1, *out.shape[d + 1 :])], [d]


batching.primitive_batchers[convolution_p] = _batch_conv


# --- lowering --------------------------------------------------------------------------------------------------------


def _by_xla(a, b, p):
    """Return the result of a kind by XLA's operation."""
    groups, dtype = p["groups"], p["preferred_element_type"]
    space = "DHW"[-len(p["window"]) :]
    if p["kind"] == "output":
        return lax.conv_general_dilated(
            a,
            b,
            p["strides"],
            p["padding"],
            rhs_dilation=p["dilation"],
            dimension_numbers=("NC" + space, "OI" + space, "NC" + space),
            feature_group_count=groups,
            preferred_element_type=dtype,
        )
    if p["kind"] == "input":
        kernel, order = lax.rev(b, range(2, b.ndim)), "IO"
        if groups > 1:
            kernel, order = conv_cpu.swap_channels(kernel, groups), "OI"
        padding = conv_cpu.input_padding(p, a.shape[2:])
        return lax.conv_general_dilated(
            a,
            kernel,
            (1,) * len(space),
            [(low, high) for low, high, _ in padding],
            lhs_dilation=p["strides"],
            rhs_dilation=p["dilation"],
            dimension_numbers=("NC" + space, order + space, "NC" + space),
            feature_group_count=groups,
            preferred_element_type=dtype,
        )
    # The output is the kernel now, the batch is the summed dim, and channels of the image are the batch.
    sizes = zip(p["image"], b.shape[2:], p["window"], p["strides"], p["dilation"], p["padding"], strict=True)
    padding = [(low, d * (k - 1) + s * (m - 1) + 1 - n - low) for n, m, k, s, d, (low, _) in sizes]
    return lax.conv_general_dilated(
        a,
        b,
        p["dilation"],
        padding,
        rhs_dilation=p["strides"],
        dimension_numbers=("CN" + space, "IO" + space, "CN" + space),
        batch_group_count=groups,
        preferred_element_type=dtype,
    )


def _on_cpu(a, b, p):
    if not all(isinstance(n, int) for x in (a, b) for n in x.shape) or not math.prod(a.shape) or not math.prod(b.shape):
        return _by_xla(a, b, p)
    if p["kind"] == "input":
        return conv_cpu.image(a, b, p, _by_xla)
    if p["kind"] == "kernel":
        return conv_cpu.kernel(a, b, p, _by_xla)
    run = lax.composite(lambda x, w, **_: conv_cpu.output(x, w, p, _by_xla), COMPOSITE)
    numbers = {name: np.array(p[name], np.int64) for name in ("strides", "padding", "dilation", "groups")}
    return run(a, b, **numbers)


def _run(a, b, *, platform, **p):
    if platform != "cpu":
        return [_by_xla(a, b, p)]
    # Sums of 16-bit floats are in 32 bits.
    wide = a.dtype if a.dtype.itemsize > 2 else np.dtype(np.float32)
    out = _on_cpu(a.astype(wide), b.astype(wide), {**p, "preferred_element_type": None})
    return [out.astype(p["preferred_element_type"] or a.dtype)]


register(convolution_p, _shapes, _run)


def flops(eqn) -> float:
    """Return the multiply-adds of the equation, counted twice each."""
    p = eqn.params
    shapes = dict(zip((*READS[p["kind"]], p["kind"]), (v.aval.shape for v in (*eqn.invars, *eqn.outvars))))
    return 2.0 * shapes["input"][0] * math.prod(shapes["kernel"]) * math.prod(sizes(p))
