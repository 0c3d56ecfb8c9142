"""OneFlow's fused kernels with custom argument handling; the others are in `functions.rows.oneflow`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as as_int
from typing import Any

from jax import custom_jvp, lax

from sbpjax._core import functions
from sbpjax._core.ops.attention import fused
from sbpjax._core.ops.layers import norm
from sbpjax._core.ops.shapes import view
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import OpValueError

from .. import nn as functional
from ..layers.dropout import drawn_key

# -------------------------------------------------------------------------------------------------------------- norms


def normalization(
    x: Tensor,
    moving_mean: Tensor | None = None,
    moving_variance: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    axis: int = 1,
    epsilon: float = 1e-5,
    momentum: float = 0.1,
    is_training: bool = False,
) -> Tensor:
    """Return ``x`` normalised per channel; if training by its own statistics, which move the given ones."""
    static = {"training": is_training, "momentum": momentum, "eps": epsilon, "axis": as_int(axis)}
    inputs = (x, moving_mean, moving_variance, gamma, beta)
    if is_training and moving_mean is not None and moving_variance is not None:
        out, mean, variance = dispatch.apply(norm.batch_norm, *inputs, **static)
        for target, value in ((moving_mean, mean), (moving_variance, variance)):
            target.data.copy_(value.detach())
        return out
    return dispatch.apply(_normalize_batch, *inputs, **static)


def _normalize_batch(x, mean=None, variance=None, gamma=None, beta=None, /, **options):
    return norm.batch_norm(x, mean, variance, gamma, beta, **options)[0]


def normalization_add_relu(
    x: Tensor,
    addend: Tensor | None = None,
    moving_mean: Tensor | None = None,
    moving_variance: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    axis: int = 1,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    is_training: bool = False,
) -> Tensor:
    """Return relu of a batch norm, plus another tensor if given."""
    out = normalization(x, moving_mean, moving_variance, gamma, beta, axis, epsilon, momentum, is_training)
    return (out if addend is None else out + addend).relu()


def _add_skip(x: Tensor, bias, skip, alpha: float) -> Tensor:
    x = x if bias is None else x + bias
    return x if skip is None else x.add(skip, alpha=alpha)


def skip_layer_norm(
    x: Tensor, *, gamma=None, beta=None, bias=None, skip=None, epsilon: float = 1e-5, alpha: float = 10.0
) -> Tensor:
    """Return the layer norm over the last dim of ``x + bias + alpha * skip``."""
    return functional.layer_norm(_add_skip(x, bias, skip, alpha), x.shape[-1:], gamma, beta, epsilon)


def skip_rms_norm(
    x: Tensor, *, weight=None, bias=None, skip=None, epsilon: float = 1e-5, alpha: float = 10.0
) -> Tensor:
    """Return the RMS norm over the last dim of ``x + bias + alpha * skip``."""
    return functional.rms_norm(_add_skip(x, bias, skip, alpha), x.shape[-1:], weight, epsilon)


# ------------------------------------------------------------------------------------------------------- with dropout


def fused_bias_add_dropout(a: Tensor, b: Tensor, *, p: float = 0.5, axis: int, generator=None) -> Tensor:
    """Return ``a`` plus a vector along dim ``axis``, with elements dropped."""
    key = drawn_key(p, True, generator)
    if key is None:
        return dispatch.apply(fused.bias_add, a, b, axis=as_int(axis))
    return dispatch.apply(fused.bias_add_dropout, a, b, key, p=float(p), axis=as_int(axis))


def fused_scale_mask_softmax_dropout(
    x: Tensor,
    mask: Tensor,
    *,
    fill_value: float = 0.0,
    scale: float = 1.0,
    p: float = 0.5,
    training: bool = True,
    generator=None,
) -> tuple:
    """Return the masked softmax of ``scale * x`` after dropout, and before."""
    inputs = (x, mask, drawn_key(p, training, generator))
    return dispatch.apply(
        fused.scale_mask_softmax_dropout, *inputs, fill_value=float(fill_value), scale=float(scale), p=float(p)
    )


def fused_bias_add_scale_mask_softmax_dropout(
    x: Tensor,
    bias: Tensor,
    mask: Tensor,
    *,
    fill_value: float = 0.0,
    scale: float = 1.0,
    p: float = 0.5,
    training: bool = True,
    generator=None,
) -> tuple:
    """Return the masked softmax of ``scale * (x + bias)`` after dropout, and before."""
    inputs = (x, bias, mask, drawn_key(p, training, generator))
    return dispatch.apply(
        fused.bias_add_scale_mask_softmax_dropout, *inputs, fill_value=float(fill_value), scale=float(scale), p=float(p)
    )


def fused_scale_tril_softmax_mask_scale(
    a: Tensor, *, p: float = 0.5, diagonal: int, tril_scale_value: float, tril_fill_value: float = 0.0, generator=None
) -> tuple:
    """Return the softmax of the scaled lower triangle after dropout, and before."""
    return dispatch.apply(
        fused.scale_tril_softmax_mask_scale,
        a,
        drawn_key(p, True, generator),
        p=float(p),
        diagonal=as_int(diagonal),
        tril_scale_value=float(tril_scale_value),
        tril_fill_value=float(tril_fill_value),
    )


# ---------------------------------------------------------------------------------------------------- networks, sums


def fused_matmul_bias(x: Tensor, weight: Tensor, bias: Tensor, _add_to_output: Tensor | None = None) -> Tensor:
    """Return ``x @ weight.T + bias``, plus another tensor if given."""
    out = functional.linear(x, weight, bias)
    return out if _add_to_output is None else out + _add_to_output


def _layers(x: Tensor, weights, biases, skip_final_activation: bool, rates=None) -> Tensor:
    last = len(weights) - 1
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = functional.linear(x, weight, bias)
        if i < last or not skip_final_activation:
            x = x.relu()
        if rates is not None and rates[i] > 0:
            x = functional.dropout(x, rates[i])
    return x


def fused_mlp(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], skip_final_activation: bool) -> Tensor:
    """Return x through linear layers with relu between them, and after the last unless skipped."""
    return _layers(x, weights, biases, skip_final_activation)


def fused_matmul_bias_add_relu_dropout(
    x: Tensor,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor],
    skip_final_activation: bool,
    dropout_rate_list: Sequence[float],
    generator=None,
) -> Tensor:
    """Return x through linear layers, each with relu and dropout."""
    return _layers(x, weights, biases, skip_final_activation, dropout_rate_list)


def fused_weighted_sum(inputs: Sequence[Tensor], weights: Sequence[float], alpha: float = 1.0) -> Tensor:
    """Return alpha times the sum of tensors times numbers."""
    total = inputs[0] * (weights[0] * alpha)
    for x, w in zip(inputs[1:], weights[1:], strict=True):
        total = total.add(x, alpha=w * alpha)
    return total


def fused_clip_grad(model_diff: Sequence[Tensor], max_norm: float, norm_type: float) -> Tensor:
    """Scale gradients in place to a common norm of at most ``max_norm``, and return the norm they had."""
    total = functions.stack([g.norm(norm_type) for g in model_diff]).norm(norm_type)
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for g in model_diff:
        g.mul_(factor)
    return total


def arg_sort(input: Tensor, direction: str) -> Tensor:
    """Return the indices that sort the last dim, ``"ASCENDING"`` or ``"DESCENDING"``."""
    if direction not in ("ASCENDING", "DESCENDING"):
        rule = "direction is 'ASCENDING' or 'DESCENDING'"
        raise OpValueError(f"arg_sort(x, {direction!r})", repr(direction), rule, '"ASCENDING"')
    return input.argsort(-1, direction == "DESCENDING")


def reduce_prod(x: Tensor, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """Return the product over some dims, all by default."""
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    for d in sorted((d % x.ndim for d in dims), reverse=True):
        x = x.prod(d, keepdim, dtype=dtype)
    return x


def roc_auc_score(label: Tensor, pred: Tensor) -> Tensor:
    """Return the area under the ROC curve: how often a positive scores above a negative, ties counting half."""
    positive, score = label.reshape(-1) != 0, pred.reshape(-1)
    order = (score.unsqueeze(1) > score).float() + 0.5 * (score.unsqueeze(1) == score).float()
    pairs = positive.float().unsqueeze(1) * (~positive).float()
    return ((order * pairs).sum() / pairs.sum()).reshape(1)


# ------------------------------------------------------------------------------------------------ layouts and dtypes


def broadcast_like(x: Tensor, like: Tensor, broadcast_axes: Sequence[int] = ()) -> Tensor:
    """Return ``x`` expanded to the shape of ``like``.

    Args:
        x: the tensor.
        like: gives the shape, not the layout.
        broadcast_axes: the dims of the result that ``x`` does not have; by default ``x``'s dims are the last ones.
    """
    return dispatch.apply(_broadcast_to, x, shape=tuple(like.shape), axes=tuple(broadcast_axes))


def _broadcast_to(x, /, shape, axes):
    if not axes:
        return view.expand(x, shape)
    kept = [d for d in range(len(shape)) if d not in {a % len(shape) for a in axes}]
    if x.ndim == len(shape):
        return view.expand(x, shape)
    return lax.broadcast_in_dim(x, shape, kept)


def amp_white_identity(x: Tensor) -> Tensor:
    """Return ``x``, in the lower precision under `autocast`."""
    return x.to(mode.autocast.dtype) if mode.autocast is not None and x.dtype.is_floating_point else x


def amp_black_identity(x: Tensor) -> Tensor:
    """Return ``x``, in float32 under `autocast`."""
    return x.float() if mode.autocast is not None and x.dtype.is_floating_point else x


def _resizer(mode: str, dims: int):
    def resize(x: Tensor, *scales, output_size=None, align_corners=None, data_format: str = "channels_first") -> Tensor:
        factors = [s for s in scales if isinstance(s, (int, float)) and not isinstance(s, bool)][:dims]
        options = {} if mode == "nearest" else {"align_corners": bool(align_corners)}
        if output_size is not None:
            return functional.interpolate(x, size=tuple(output_size), mode=mode, **options)
        return functional.interpolate(x, scale_factor=tuple(factors), mode=mode, **options)

    resize.__name__ = resize.__qualname__ = f"upsample_{mode}_{dims}d"
    resize.__doc__ = f"Return `nn.functional.interpolate` in mode {mode!r}."
    return resize


upsample_nearest_1d, upsample_nearest_2d, upsample_nearest_3d = (_resizer("nearest", n) for n in (1, 2, 3))
upsample_linear_1d, upsample_bilinear_2d = _resizer("linear", 1), _resizer("bilinear", 2)
upsample_bicubic_2d, upsample_trilinear_3d = _resizer("bicubic", 2), _resizer("trilinear", 3)


# ------------------------------------------------------------------------------------------------------ execution order


def _after(x: Any, *others: Any) -> Any:
    """Return x as it is, computed after the others; the gradient is x's alone."""

    @custom_jvp
    def hold(value):
        return lax.optimization_barrier((value, *[lax.stop_gradient(o) for o in others]))[0]

    hold.defjvp(lambda primals, tangents: (hold(*primals), tangents[0]))
    return hold(x)


def depend(input: Tensor, depend: Tensor | Sequence[Tensor]) -> Tensor:
    """Return `input` unchanged, in a compiled program computed after other tensors.

    Args:
        input: any tensor.
        depend: the tensors computed first, one or several.
    """
    others = (depend,) if isinstance(depend, Tensor) else tuple(depend)
    return dispatch.apply(_after, input, *[o.detach() for o in others])
