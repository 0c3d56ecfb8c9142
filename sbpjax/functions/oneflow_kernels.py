"""More of OneFlow's ``_C``: the kernels' own names and call forms, each by the function here that does the same.

Loaded when one of them is first asked for (`sbpjax._C`).
"""

from __future__ import annotations

from collections.abc import Sequence

from sbpjax import functions
from sbpjax.errors import OpValueError, message
from sbpjax.tensor.creation import empty, full
from sbpjax.tensor.tensor import Tensor

from . import linalg


def _functional():
    from . import nn as functional

    return functional


# ------------------------------------------------------------------------------------------------------- plain names


def batch_matmul(
    a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0
) -> Tensor:
    """Return ``alpha * (a @ b)`` for stacks of matrices, each transposed first if asked."""
    from sbpjax.functions import oneflow_c as _C

    return _C.matmul(a, b, transpose_a, transpose_b, alpha)


def arg_sort(input: Tensor, direction: str) -> Tensor:
    """Return the indices that sort the last dim, ``"ASCENDING"`` or ``"DESCENDING"``."""
    if direction not in ("ASCENDING", "DESCENDING"):
        rule = "direction is 'ASCENDING' or 'DESCENDING'"
        raise OpValueError(message(f"arg_sort(x, {direction!r})", repr(direction), rule, '"ASCENDING"'))
    return input.argsort(-1, direction == "DESCENDING")


def constant(shape, value, *, dtype, device=None) -> Tensor:
    """Return `sbpjax.full`."""
    return full(tuple(shape), value, dtype=dtype, device=device)


def global_constant(shape, value, *, dtype, placement, sbp) -> Tensor:
    """Return `sbpjax.full` on a placement."""
    return full(tuple(shape), value, dtype=dtype, placement=placement, sbp=sbp)


def global_empty(shape, *, dtype, placement, sbp) -> Tensor:
    """Return `sbpjax.empty` on a placement."""
    return empty(*shape, dtype=dtype, placement=placement, sbp=sbp)


def copy(x: Tensor, device_type: str, device_id: int = 0, pin_memory: bool = False) -> Tensor:
    """Return the tensor on another device."""
    return x.to(f"{device_type}:{device_id}")


def dim_gather(input: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    """Return `sbpjax.gather`."""
    return input.gather(dim, index)


def expand_dims(input: Tensor, dim: int) -> Tensor:
    """Return a view with a new dim of size 1."""
    return input.unsqueeze(dim)


def reshape_like(input: Tensor, like: Tensor) -> Tensor:
    """Return the tensor in the shape of another one."""
    return input.reshape(like.shape)


def split_like(x: Tensor, like: Sequence[Tensor], axis: int) -> tuple:
    """Return parts of a dim, as large as other tensors' dim."""
    return x.split([y.shape[axis] for y in like], axis)


def rint(x: Tensor) -> Tensor:
    """Return the tensor rounded half to even."""
    return x.round()


def trunc_divide(input: Tensor, other, inplace: bool = False) -> Tensor:
    """Return the quotient rounded towards zero."""
    return input.div_(other, rounding_mode="trunc") if inplace else input.div(other, rounding_mode="trunc")


def reciprocal_no_nan(x: Tensor) -> Tensor:
    """Return 1 / x, and 0 where x is 0."""
    zero = x == 0
    return x.masked_fill(zero, 1).reciprocal().masked_fill(zero, 0)


def sqrt_square_sum(x: Tensor) -> Tensor:
    """Return the root of the sum of squares."""
    return x.norm()


def matrix_vector_product(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix and a vector."""
    return input.mv(vec)


def host_scalar_add_by_tensor(x: Tensor, scalar: Tensor) -> Tensor:
    """Return x plus a 0-d tensor."""
    return x + scalar


def fast_gelu(x: Tensor) -> Tensor:
    """Return gelu in its tanh approximation."""
    return _functional().gelu(x, approximate="tanh")


def gelu_with_approximate(x: Tensor, approximate: str = "none") -> Tensor:
    """Return `nn.functional.gelu`."""
    return _functional().gelu(x, approximate=approximate)


def linalg_cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return `sbpjax.cross`."""
    return functions.cross(input, other, dim)


def unfold_tensor(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of windows of a dim."""
    return x.unfold(dimension, size, step)


def tensor_setitem(x: Tensor, index, value) -> None:
    """Write a value at an index."""
    x[tuple(index) if isinstance(index, list) else index] = value


def scatternd(indices: Tensor, updates: Tensor, shape) -> Tensor:
    """Return zeros with updates added where rows of indices name."""
    return functions.scatter_nd(indices, updates, shape)


def scatterndlike(like: Tensor, updates: Tensor, indices: Tensor) -> Tensor:
    """Return zeros in the shape of another tensor, with updates added where rows of indices name."""
    return scatternd(indices, updates, tuple(like.shape))


def select_top_n(inputs: Sequence[Tensor], n: int) -> tuple:
    """Return the first n of several tensors."""
    return tuple(inputs[:n])


# -------------------------------------------------------------------------------------------------------- reductions


def _reducer(name: str):
    def reduced(x: Tensor, dim=None, keepdim: bool = False, **options) -> Tensor:
        found = getattr(x, name)(**options) if dim is None else getattr(x, name)(dim, keepdim, **options)
        return found

    reduced.__name__ = reduced.__qualname__ = f"reduce_{name}"
    reduced.__doc__ = f"Return `Tensor.{name}` over some dims, all by default."
    return reduced


reduce_sum, reduce_mean, reduce_nansum = _reducer("sum"), _reducer("mean"), _reducer("nansum")
reduce_any, reduce_all = _reducer("any"), _reducer("all")
_amax, _amin, _prod = _reducer("amax"), _reducer("amin"), _reducer("prod")


def reduce_max(x: Tensor, axis=None, keepdim: bool = False) -> Tensor:
    """Return the largest elements over some dims, all by default."""
    return _amax(x, axis, keepdim)


def reduce_min(x: Tensor, axis=None, keepdim: bool = False) -> Tensor:
    """Return the smallest elements over some dims, all by default."""
    return _amin(x, axis, keepdim)


def reduce_prod(x: Tensor, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """Return the product over some dims, all by default."""
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    for d in sorted((d % x.ndim for d in dims), reverse=True):
        x = x.prod(d, keepdim, dtype=dtype)
    return x


def reduce_sum_like(x: Tensor, like: Tensor, axis=()) -> Tensor:
    """Return the sum over dims, in the shape of another tensor."""
    return (x.sum(tuple(axis)) if len(axis) else x).reshape(like.shape)


def unsorted_segment_sum(x: Tensor, segment_ids: Tensor, axis: int, num_segments: int) -> Tensor:
    """Return the sums of the slices of a dim that have one segment number."""
    shape = [num_segments if d == axis % x.ndim else n for d, n in enumerate(x.shape)]
    return x.new_zeros(*shape).index_add(axis, segment_ids, x)


def unsorted_segment_sum_like(x: Tensor, segment_ids: Tensor, like: Tensor, axis: int) -> Tensor:
    """Return `unsorted_segment_sum` with as many segments as another tensor's dim."""
    return unsorted_segment_sum(x, segment_ids, axis, like.shape[axis])


# ---------------------------------------------------------------------------------------------- products and networks


def fused_matmul_bias(x: Tensor, weight: Tensor, bias: Tensor, _add_to_output: Tensor | None = None) -> Tensor:
    """Return ``x @ weight.T + bias``, plus another tensor if given."""
    out = _functional().linear(x, weight, bias)
    return out if _add_to_output is None else out + _add_to_output


def _layers(x: Tensor, weights, biases, skip_final_activation: bool, rates=None) -> Tensor:
    last = len(weights) - 1
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = _functional().linear(x, weight, bias)
        if i < last or not skip_final_activation:
            x = x.relu()
        if rates is not None and rates[i] > 0:
            x = _functional().dropout(x, rates[i])
    return x


def fused_mlp(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], skip_final_activation: bool) -> Tensor:
    """Return x through linear layers with relu between them, and behind unless skipped."""
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


def grouped_matmul(xs: Sequence[Tensor], weights: Sequence[Tensor]) -> tuple:
    """Return ``x @ weight.T`` of each pair."""
    return tuple(_functional().linear(x, w) for x, w in zip(xs, weights, strict=True))


def grouped_matmul_bias(xs: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor]) -> tuple:
    """Return ``x @ weight.T + bias`` of each triple."""
    return tuple(_functional().linear(x, w, b) for x, w, b in zip(xs, weights, biases, strict=True))


def fused_weighted_sum(inputs: Sequence[Tensor], weights: Sequence[float], alpha: float = 1.0) -> Tensor:
    """Return alpha times the sum of tensors times numbers."""
    total = inputs[0] * (weights[0] * alpha)
    for x, w in zip(inputs[1:], weights[1:], strict=True):
        total = total.add(x, alpha=w * alpha)
    return total


def fused_scale_mask_bias_softmax(
    x: Tensor, mask: Tensor, bias: Tensor | None = None, scale: float = 0.35355, inplace: bool = False
) -> Tensor:
    """Return the softmax over the last dim of ``scale * x + mask``, plus a bias if given."""
    scores = x * scale + mask
    return (scores if bias is None else scores + bias).softmax(-1)


def _skipped(x: Tensor, bias, skip, alpha: float) -> Tensor:
    x = x if bias is None else x + bias
    return x if skip is None else x.add(skip, alpha=alpha)


def skip_layer_norm(
    x: Tensor, *, gamma=None, beta=None, bias=None, skip=None, epsilon: float = 1e-5, alpha: float = 10.0
) -> Tensor:
    """Return the layer norm over the last dim of ``x + bias + alpha * skip``."""
    return _functional().layer_norm(_skipped(x, bias, skip, alpha), x.shape[-1:], gamma, beta, epsilon)


def skip_rms_norm(
    x: Tensor, *, weight=None, bias=None, skip=None, epsilon: float = 1e-5, alpha: float = 10.0
) -> Tensor:
    """Return the RMS norm over the last dim of ``x + bias + alpha * skip``."""
    return _functional().rms_norm(_skipped(x, bias, skip, alpha), x.shape[-1:], weight, epsilon)


def rms_layer_norm(hidden_states: Tensor, weight: Tensor, variance_epsilon: float) -> Tensor:
    """Return the RMS norm over the last dim."""
    return _functional().rms_norm(hidden_states, hidden_states.shape[-1:], weight, variance_epsilon)


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
    from sbpjax.functions import oneflow_c as _C

    out = _C.normalization(x, moving_mean, moving_variance, gamma, beta, axis, epsilon, momentum, is_training)
    return (out if addend is None else out + addend).relu()


# ------------------------------------------------------------------------------------------------------------- losses


def kl_div_loss(input: Tensor, target: Tensor, log_target: bool = False, reduction: str = "mean") -> Tensor:
    """Return `nn.functional.kl_div`."""
    return _functional().kl_div(input, target, reduction=reduction, log_target=log_target)


def softmax_cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """Return the cross entropy of each row of logits with a row of probabilities."""
    return -(label * logits.log_softmax(-1)).sum(-1)


def sparse_cross_entropy(prediction: Tensor, label: Tensor, depth: int) -> Tensor:
    """Return minus the logarithm of the probability of each row's class."""
    return -prediction.gather(-1, label.unsqueeze(-1).long()).squeeze(-1).log()


def roc_auc_score(label: Tensor, pred: Tensor) -> Tensor:
    """Return the area under the ROC curve: how often a positive scores above a negative, ties counting half."""
    positive, score = label.reshape(-1) != 0, pred.reshape(-1)
    order = (score.unsqueeze(1) > score).float() + 0.5 * (score.unsqueeze(1) == score).float()
    pairs = positive.float().unsqueeze(1) * (~positive).float()
    return ((order * pairs).sum() / pairs.sum()).reshape(1)


# -------------------------------------------------------------------------------------------------------------- boxes


def fused_get_intersection_area(b1_x1, b1_x2, b2_x1, b2_x2, b1_y1, b1_y2, b2_y1, b2_y2) -> Tensor:
    """Return the areas that boxes share."""
    wide = b1_x2.minimum(b2_x2) - b1_x1.maximum(b2_x1)
    high = b1_y2.minimum(b2_y2) - b1_y1.maximum(b2_y1)
    return wide.clamp(min=0) * high.clamp(min=0)


def fused_get_iou(w1: Tensor, h1: Tensor, w2: Tensor, h2: Tensor, inter: Tensor, eps: float) -> Tensor:
    """Return the shared area over that of both boxes."""
    return inter / (w1 * h1 + w2 * h2 - inter + eps)


def fused_clip_grad(model_diff: Sequence[Tensor], max_norm: float, norm_type: float) -> Tensor:
    """Scale gradients in place to a common norm of at most ``max_norm``, and return the norm they had."""
    total = functions.stack([g.norm(norm_type) for g in model_diff]).norm(norm_type)
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
    for g in model_diff:
        g.mul_(factor)
    return total


# ------------------------------------------------------------------------------------------------------------- resize


def _resizer(mode: str, dims: int):
    def resized(
        x: Tensor, *scales, output_size=None, align_corners=None, data_format: str = "channels_first"
    ) -> Tensor:
        factors = [s for s in scales if isinstance(s, (int, float)) and not isinstance(s, bool)][:dims]
        options = {} if mode == "nearest" else {"align_corners": bool(align_corners)}
        if output_size is not None:
            return _functional().interpolate(x, size=tuple(output_size), mode=mode, **options)
        return _functional().interpolate(x, scale_factor=tuple(factors), mode=mode, **options)

    resized.__name__ = resized.__qualname__ = f"upsample_{mode}_{dims}d"
    resized.__doc__ = f"Return `nn.functional.interpolate` in mode {mode!r}."
    return resized


upsample_nearest_1d, upsample_nearest_2d, upsample_nearest_3d = (_resizer("nearest", n) for n in (1, 2, 3))
upsample_linear_1d, upsample_bilinear_2d = _resizer("linear", 1), _resizer("bilinear", 2)
upsample_bicubic_2d, upsample_trilinear_3d = _resizer("bicubic", 2), _resizer("trilinear", 3)


def deconv1d(*args, **options) -> Tensor:
    """Return `nn.functional.conv_transpose1d`."""
    return _functional().conv_transpose1d(*args, **options)


def deconv2d(*args, **options) -> Tensor:
    """Return `nn.functional.conv_transpose2d`."""
    return _functional().conv_transpose2d(*args, **options)


def deconv3d(*args, **options) -> Tensor:
    """Return `nn.functional.conv_transpose3d`."""
    return _functional().conv_transpose3d(*args, **options)


inv, matrix_norm, vector_norm = linalg.inv, linalg.matrix_norm, linalg.vector_norm
