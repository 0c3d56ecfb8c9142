"""Written by `make stubs` from the live package; do not edit."""
# OneFlow's functional ops under their original names: ``flow._C.matmul(a, b, transpose_b=True)``.

import builtins
import collections.abc
import typing
import sbpjax._core.tensor.handle.types as _types
from sbpjax._core.tensor.creation.generator import Generator as _Generator
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor
from sbpjax.sbp.placement import placement as _placement

def add(input: _Tensor | None = None, other: _types.TensorLike | None = None, *more: builtins.object, alpha: builtins.float = 1, inplace: builtins.bool = False, out: _Tensor | None = None, inputs: collections.abc.Sequence[_Tensor] | None = None) -> _Tensor:
    """Return ``input + alpha * other``, or the sum of several tensors, given one by one or as a list, as one op.

    Args:
        input: a tensor or a number; or a list of tensors.
        more: further tensors.
        alpha: factor of `other`.
        inplace: write the sum into `input`.
        out: a tensor to write the sum into.
        inputs: the list of tensors by OneFlow's name.
    """
from sbpjax._core.functions.oneflow.kernels import amp_black_identity as amp_black_identity
from sbpjax._core.functions.oneflow.kernels import amp_white_identity as amp_white_identity
from sbpjax._core.functions.oneflow.kernels import arg_sort as arg_sort
def baddbmm(input: _Tensor, batch1: _Tensor, batch2: _Tensor, beta: builtins.complex = 1, alpha: builtins.complex = 1, *, out: _Tensor | None = None) -> _Tensor:
    """Return beta * input + alpha * (batch1 @ batch2) for stacks of matrices, with input broadcast.

    Args:
        beta: factor of ``input``.
        alpha: factor of the product.
    """
def batch_matmul(a: _Tensor, b: _Tensor, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, alpha: builtins.float = 1.0) -> _Tensor:
    """Return ``matmul(a, b, transpose_a, transpose_b, alpha)``."""
def bias_add(x: _Tensor, bias: _Tensor, axis: builtins.int = 1) -> _Tensor:
    """Return x + bias, with the vector along dim ``axis``."""
def binary_cross_entropy_loss(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return ``nn.functional.binary_cross_entropy(input, target, weight, reduction=reduction)``."""
def binary_cross_entropy_with_logits_loss(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, pos_weight: _Tensor | None = None, reduction: builtins.str = 'mean') -> _Tensor:
    """Return ``nn.functional.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight, reduction=reduction)``."""
def constant(shape: _types.IntOrInts, value: _types.TensorLike, *, dtype: _types.DTypeLike, device: _types.DeviceLike | None = None) -> _Tensor:
    """Return ``full(tuple(shape), value, dtype=dtype, device=device)``."""
def copy(x: _Tensor, device_type: builtins.str, device_id: builtins.int = 0, pin_memory: builtins.bool = False) -> _Tensor:
    """Return ``x.to(f'{device_type}:{device_id}')``."""
def cross_entropy(input: _Tensor, target: _Tensor, weight: _Tensor | None = None, ignore_index: builtins.int = -100, reduction: builtins.str = 'mean', label_smoothing: builtins.float = 0.0) -> _Tensor:
    """Return ``nn.functional.cross_entropy(input, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)``."""
def deconv1d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts = 0, output_padding: _types.IntOrInts = 0, groups: builtins.int = 1, dilation: _types.IntOrInts = 1, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the transposed convolution of `(N, C, L)`: the gradient of `conv1d` as a function of its output.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        weight: `(C, O / groups, ...)`.
        bias: `(O,)` or None.
        stride: distance of the input's cells in the output.
        padding: cells cut from both sides of the output.
        output_padding: cells added to one side of the output.
        groups: channels are divided into so many groups that do not mix.
        dilation: distance of the kernel's cells.
    """
def deconv2d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts = 0, output_padding: _types.IntOrInts = 0, groups: builtins.int = 1, dilation: _types.IntOrInts = 1, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the transposed convolution of `(N, C, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        weight: `(C, O / groups, ...)`.
        bias: `(O,)` or None.
        stride: distance of the input's cells in the output.
        padding: cells cut from both sides of the output.
        output_padding: cells added to one side of the output.
        groups: channels are divided into so many groups that do not mix.
        dilation: distance of the kernel's cells.
    """
def deconv3d(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, stride: _types.IntOrInts = 1, padding: _types.IntOrInts = 0, output_padding: _types.IntOrInts = 0, groups: builtins.int = 1, dilation: _types.IntOrInts = 1, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return the transposed convolution of `(N, C, D, H, W)`.

    Args:
        input: `(N, C, ...)` or `(C, ...)`.
        weight: `(C, O / groups, ...)`.
        bias: `(O,)` or None.
        stride: distance of the input's cells in the output.
        padding: cells cut from both sides of the output.
        output_padding: cells added to one side of the output.
        groups: channels are divided into so many groups that do not mix.
        dilation: distance of the kernel's cells.
    """
def dim_gather(input: _Tensor, dim: builtins.int, index: _Tensor, sparse_grad: builtins.bool = False) -> _Tensor:
    """Return ``input.gather(dim, index)``."""
def expand_dims(input: _Tensor, dim: builtins.int) -> _Tensor:
    """Return ``input.unsqueeze(dim)``."""
def fast_gelu(x: _Tensor) -> _Tensor:
    """Return ``nn.functional.gelu(x, approximate='tanh')``."""
def fused_bias_add_dropout(a: _Tensor, b: _Tensor, *, p: builtins.float = 0.5, axis: builtins.int, generator: _Generator | None = None) -> _Tensor:
    """Return ``a`` plus a vector along dim ``axis``, with elements dropped."""
def fused_bias_add_gelu(a: _Tensor, b: _Tensor, axis: builtins.int, *, out: _Tensor | None = None) -> _Tensor:
    """Return gelu(a + bias)."""
def fused_bias_add_scale_mask_softmax_dropout(x: _Tensor, bias: _Tensor, mask: _Tensor, *, fill_value: builtins.float = 0.0, scale: builtins.float = 1.0, p: builtins.float = 0.5, training: builtins.bool = True, generator: _Generator | None = None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return the masked softmax of ``scale * (x + bias)`` after dropout, and before."""
from sbpjax._core.functions.oneflow.kernels import fused_clip_grad as fused_clip_grad
def fused_fast_gelu_mul(x: _Tensor, multiplier: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return gelu(x) (its tanh approximation) times another tensor."""
def fused_get_intersection_area(b1_x1: typing.Any, b1_x2: typing.Any, b2_x1: typing.Any, b2_x2: typing.Any, b1_y1: typing.Any, b1_y2: typing.Any, b2_y1: typing.Any, b2_y2: typing.Any) -> _Tensor:
    """Return ``(b1_x2.minimum(b2_x2) - b1_x1.maximum(b2_x1)).clamp(min=0) * (b1_y2.minimum(b2_y2) - b1_y1.maximum(b2_y1)).clamp(min=0)``."""
def fused_get_iou(w1: _Tensor, h1: _Tensor, w2: _Tensor, h2: _Tensor, inter: _Tensor, eps: builtins.float) -> _Tensor:
    """Return ``inter / (w1 * h1 + w2 * h2 - inter + eps)``."""
def fused_glu(x: _Tensor, w: _Tensor, b: _Tensor | None = None, v: _Tensor | None = None, c: _Tensor | None = None, activation: builtins.str = 'none', *, out: _Tensor | None = None) -> _Tensor:
    """Return ``(x w^T + b)`` times the activation of ``x v^T + c``; w holds both matrices if v is None."""
from sbpjax._core.functions.oneflow.kernels import fused_matmul_bias as fused_matmul_bias
def fused_matmul_bias_add_relu_dropout(x: _Tensor, weights: collections.abc.Sequence[_Tensor], biases: collections.abc.Sequence[_Tensor], skip_final_activation: builtins.bool, dropout_rate_list: collections.abc.Sequence[builtins.float], generator: _Generator | None = None) -> _Tensor:
    """Return x through linear layers, each with relu and dropout."""
from sbpjax._core.functions.oneflow.kernels import fused_mlp as fused_mlp
def fused_multi_head_attention_inference(query: _Tensor, key: _Tensor, value: _Tensor, num_heads: builtins.int, causal: builtins.bool = False) -> _Tensor:
    """Return ``_C.fused_multi_head_attention_inference_v2(query=query, query_layout='BM(HK)', query_head_size=query.shape[-1] // num_heads, key=key, value=value, causal=causal)``."""
from sbpjax._core.functions.oneflow.attention import fused_multi_head_attention_inference_v2 as fused_multi_head_attention_inference_v2
def fused_scale_mask_bias_softmax(x: _Tensor, mask: _Tensor, bias: _Tensor | None = None, scale: builtins.float = 0.35355, inplace: builtins.bool = False) -> _Tensor:
    """Return ``(x * scale + mask if bias is None else x * scale + mask + bias).softmax(-1)``."""
def fused_scale_mask_softmax(x: _Tensor, mask: _Tensor, fill_value: builtins.float = 0.0, scale: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the softmax over the last dim of ``scale * x`` where the mask holds, of ``fill_value`` elsewhere."""
def fused_scale_mask_softmax_dropout(x: _Tensor, mask: _Tensor, *, fill_value: builtins.float = 0.0, scale: builtins.float = 1.0, p: builtins.float = 0.5, training: builtins.bool = True, generator: _Generator | None = None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return the masked softmax of ``scale * x`` after dropout, and before."""
def fused_scale_tril(x: _Tensor, diagonal: builtins.int = 0, fill_value: builtins.float = 0.0, scale: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return the lower triangle times a scale, and ``fill_value`` above it."""
def fused_scale_tril_softmax_mask_scale(a: _Tensor, *, p: builtins.float = 0.5, diagonal: builtins.int, tril_scale_value: builtins.float, tril_fill_value: builtins.float = 0.0, generator: _Generator | None = None) -> builtins.tuple[_Tensor, _Tensor]:
    """Return the softmax of the scaled lower triangle after dropout, and before."""
def fused_self_attention(hidden_states: _Tensor, head_size: builtins.int = 8, alpha: builtins.float = 1.0) -> builtins.tuple[_Tensor, _Tensor]:
    """Return the scaled scores and the values of ``(T, B, heads * 3 * head_size)``, q, k and v side by side per head."""
from sbpjax._core.functions.oneflow.kernels import fused_weighted_sum as fused_weighted_sum
def gather(x: _Tensor, indices: _Tensor, axis: builtins.int = 0) -> _Tensor:
    """Return slices of x along a dim; negative indices count from its end.

    Args:
        x: any shape.
        indices: integers of any shape; their dims replace the dim.
        axis: the dim.
    """
def gelu_with_approximate(x: _Tensor, approximate: builtins.str = 'none') -> _Tensor:
    """Return ``nn.functional.gelu(x, approximate=approximate)``."""
def global_arange(start: builtins.float, end: _types.TensorLike | None = None, step: builtins.float = 1, *, dtype: _types.DTypeLike | None = None, placement: _placement, sbp: _types.SbpLike) -> _Tensor:
    """Return ``arange(start, end, step, dtype=dtype, placement=placement, sbp=sbp)``."""
def global_constant(shape: _types.IntOrInts, value: _types.TensorLike, *, dtype: _types.DTypeLike, placement: _placement, sbp: _types.SbpLike) -> _Tensor:
    """Return ``full(tuple(shape), value, dtype=dtype, placement=placement, sbp=sbp)``."""
def global_empty(shape: _types.IntOrInts, *, dtype: _types.DTypeLike, placement: _placement, sbp: _types.SbpLike) -> _Tensor:
    """Return ``empty(*shape, dtype=dtype, placement=placement, sbp=sbp)``."""
def grouped_matmul(xs: collections.abc.Sequence[_Tensor], weights: collections.abc.Sequence[_Tensor]) -> builtins.tuple:
    """Return ``tuple(nn.functional.linear(x, w) for x, w in zip(xs, weights, strict=True))``."""
def grouped_matmul_bias(xs: collections.abc.Sequence[_Tensor], weights: collections.abc.Sequence[_Tensor], biases: collections.abc.Sequence[_Tensor]) -> builtins.tuple:
    """Return ``tuple(nn.functional.linear(x, w, b) for x, w, b in zip(xs, weights, biases, strict=True))``."""
def host_scalar_add_by_tensor(x: _Tensor, scalar: _Tensor) -> _Tensor:
    """Return ``x + scalar``."""
def identity(x: _Tensor) -> _Tensor:
    """Return ``x.clone()``."""
def in_top_k(targets: _Tensor, predictions: _Tensor, k: builtins.int) -> _Tensor:
    """Return for each row whether fewer than k classes are predicted above the target's class."""
def inv(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverses of matrices."""
def kl_div_loss(input: _Tensor, target: _Tensor, log_target: builtins.bool = False, reduction: builtins.str = 'mean') -> _Tensor:
    """Return ``nn.functional.kl_div(input, target, reduction=reduction, log_target=log_target)``."""
def l1_loss(input: _Tensor, target: _Tensor, reduction: builtins.str = 'mean') -> _Tensor:
    """Return ``nn.functional.l1_loss(input, target, reduction=reduction)``."""
def layer_norm(x: _Tensor, begin_norm_axis: builtins.int, begin_params_axis: builtins.int, epsilon: builtins.float) -> _Tensor:
    """Return ``nn.functional.layer_norm(x, x.shape[begin_norm_axis % x.ndim:], eps=epsilon)``."""
def layer_norm_affine(x: _Tensor, gamma: _Tensor, beta: _Tensor, begin_norm_axis: builtins.int, begin_params_axis: builtins.int, epsilon: builtins.float) -> _Tensor:
    """Return ``nn.functional.layer_norm(x, x.shape[begin_norm_axis % x.ndim:], gamma, beta, epsilon)``."""
def linalg_cross(input: _Tensor, other: _Tensor, dim: builtins.int | None = None) -> _Tensor:
    """Return ``cross(input, other, dim)``."""
def matmul(input: _Tensor, other: _Tensor, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, alpha: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``alpha`` times the matrix product, with PyTorch's rules for 1-d inputs and batch dims.

    Args:
        input: a vector, a matrix, or a stack of them.
        other: likewise.
        transpose_a: swap the last two dims of `input` first; it keeps its layout.
        transpose_b: swap the last two dims of `other` first; it keeps its layout.
        alpha: factor of the product.
        out: a tensor to write it into.
    """
def matrix_norm(A: _Tensor, ord: builtins.float | builtins.str = 'fro', dim: builtins.tuple[builtins.int, builtins.int] = (-2, -1), keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return a norm of matrices.

    Args:
        A: at least 2 dims.
        ord: ``"fro"``, ``"nuc"``, ``inf``, ``-inf``, ``1``, ``-1``, ``2`` or ``-2``.
        dim: the dims of the matrices.
        keepdim: keep them with size 1.
        dtype: compute in this dtype.
    """
def matrix_vector_product(input: _Tensor, vec: _Tensor) -> _Tensor:
    """Return ``input.mv(vec)``."""
def mse_loss(input: _Tensor, target: _Tensor, reduction: builtins.str = 'mean') -> _Tensor:
    """Return ``nn.functional.mse_loss(input, target, reduction=reduction)``."""
from sbpjax._core.functions.oneflow.kernels import normalization as normalization
from sbpjax._core.functions.oneflow.kernels import normalization_add_relu as normalization_add_relu
def reciprocal_no_nan(x: _Tensor) -> _Tensor:
    """Return ``x.masked_fill(x == 0, 1).reciprocal().masked_fill(x == 0, 0)``."""
def reduce_all(x: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, **options: builtins.object) -> _Tensor:
    """Return ``x.all(dim, keepdim and dim is not None, **options)``."""
def reduce_any(x: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, **options: builtins.object) -> _Tensor:
    """Return ``x.any(dim, keepdim and dim is not None, **options)``."""
def reduce_max(x: _Tensor, axis: builtins.int | None = None, keepdim: builtins.bool = False) -> _Tensor:
    """Return ``x.amax(axis, keepdim and axis is not None)``."""
def reduce_mean(x: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, **options: builtins.object) -> _Tensor:
    """Return ``x.mean(dim, keepdim and dim is not None, **options)``."""
def reduce_min(x: _Tensor, axis: builtins.int | None = None, keepdim: builtins.bool = False) -> _Tensor:
    """Return ``x.amin(axis, keepdim and axis is not None)``."""
def reduce_nansum(x: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, **options: builtins.object) -> _Tensor:
    """Return ``x.nansum(dim, keepdim and dim is not None, **options)``."""
def reduce_prod(x: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return the product over some dims, all by default."""
def reduce_sum(x: _Tensor, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, **options: builtins.object) -> _Tensor:
    """Return ``x.sum(dim, keepdim and dim is not None, **options)``."""
def reduce_sum_like(x: _Tensor, like: _Tensor, axis: builtins.int = ()) -> _Tensor:
    """Return ``(x.sum(tuple(axis)) if len(axis) else x).reshape(like.shape)``."""
def reshape_like(input: _Tensor, like: _Tensor) -> _Tensor:
    """Return ``input.reshape(like.shape)``."""
def rint(x: _Tensor) -> _Tensor:
    """Return ``x.round()``."""
def rms_layer_norm(hidden_states: _Tensor, weight: _Tensor, variance_epsilon: builtins.float) -> _Tensor:
    """Return ``nn.functional.rms_norm(hidden_states, hidden_states.shape[-1:], weight, variance_epsilon)``."""
def rms_norm(x: _Tensor, weight: _Tensor | None = None, normalized_shape: _types.IntOrInts | None = None, epsilon: builtins.float = 1e-06) -> _Tensor:
    """Return ``nn.functional.rms_norm(x, normalized_shape, weight, epsilon)``."""
def scatternd(indices: _Tensor, updates: _Tensor, shape: _types.IntOrInts) -> _Tensor:
    """Return ``scatter_nd(indices, updates, shape)``."""
def scatterndlike(like: _Tensor, updates: _Tensor, indices: _Tensor) -> _Tensor:
    """Return ``scatter_nd(indices, updates, tuple(like.shape))``."""
def select_top_n(inputs: collections.abc.Sequence[_Tensor], n: builtins.int) -> builtins.tuple:
    """Return ``tuple(inputs[:n])``."""
def skip_layer_norm(x: _Tensor, *, gamma: typing.Any = None, beta: _types.TensorLike | None = None, bias: _Tensor | None = None, skip: typing.Any = None, epsilon: builtins.float = 1e-05, alpha: builtins.float = 10.0) -> _Tensor:
    """Return the layer norm over the last dim of ``x + bias + alpha * skip``."""
def skip_rms_norm(x: _Tensor, *, weight: _Tensor | None = None, bias: _Tensor | None = None, skip: typing.Any = None, epsilon: builtins.float = 1e-05, alpha: builtins.float = 10.0) -> _Tensor:
    """Return the RMS norm over the last dim of ``x + bias + alpha * skip``."""
def softmax_cross_entropy(logits: _Tensor, label: _Tensor) -> _Tensor:
    """Return ``-(label * logits.log_softmax(-1)).sum(-1)``."""
def sparse_cross_entropy(prediction: _Tensor, label: _Tensor, depth: builtins.int) -> _Tensor:
    """Return ``-prediction.gather(-1, label.unsqueeze(-1).long()).squeeze(-1).log()``."""
def sparse_softmax_cross_entropy(logits: _Tensor, label: _Tensor, depth: builtins.int | None = None) -> _Tensor:
    """Return the cross entropy of each row: logits ``(..., C)`` with class indices ``(...)``."""
def split_like(x: _Tensor, like: collections.abc.Sequence[_Tensor], axis: builtins.int) -> builtins.tuple:
    """Return ``x.split([y.shape[axis] for y in like], axis)``."""
def sqrt_square_sum(x: _Tensor) -> _Tensor:
    """Return ``x.norm()``."""
def tensor_scatter_nd_update(tensor: _Tensor, indices: _Tensor, updates: _Tensor) -> _Tensor:
    """Return tensor with the updates written at the places of an nd-index."""
def tensor_setitem(x: _Tensor, index: _Tensor, value: _types.TensorLike) -> None:
    """Return ``x.__setitem__(tuple(index) if isinstance(index, list) else index, value)``."""
def trunc_divide(input: _Tensor, other: _types.TensorLike, inplace: builtins.bool = False) -> _Tensor:
    """Return ``(input.div_ if inplace else input.div)(other, rounding_mode='trunc')``."""
def unfold_tensor(x: _Tensor, dimension: builtins.int, size: builtins.int, step: builtins.int) -> _Tensor:
    """Return ``x.unfold(dimension, size, step)``."""
def unsorted_segment_sum(x: _Tensor, segment_ids: _Tensor, axis: builtins.int, num_segments: builtins.int) -> _Tensor:
    """Return ``x.new_zeros(*[num_segments if d == axis % x.ndim else n for d, n in enumerate(x.shape)]).index_add(axis, segment_ids, x)``."""
def unsorted_segment_sum_like(x: _Tensor, segment_ids: _Tensor, like: _Tensor, axis: builtins.int) -> _Tensor:
    """Return ``_C.unsorted_segment_sum(x, segment_ids, axis, like.shape[axis])``."""
def upsample_bicubic_2d(x: _Tensor, *scales: typing.Any, output_size: _types.IntOrInts | None = None, align_corners: typing.Any = None, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return `nn.functional.interpolate` in mode 'bicubic'."""
def upsample_bilinear_2d(x: _Tensor, *scales: typing.Any, output_size: _types.IntOrInts | None = None, align_corners: typing.Any = None, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return `nn.functional.interpolate` in mode 'bilinear'."""
def upsample_linear_1d(x: _Tensor, *scales: typing.Any, output_size: _types.IntOrInts | None = None, align_corners: typing.Any = None, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return `nn.functional.interpolate` in mode 'linear'."""
def upsample_nearest_1d(x: _Tensor, *scales: typing.Any, output_size: _types.IntOrInts | None = None, align_corners: typing.Any = None, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return `nn.functional.interpolate` in mode 'nearest'."""
def upsample_nearest_2d(x: _Tensor, *scales: typing.Any, output_size: _types.IntOrInts | None = None, align_corners: typing.Any = None, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return `nn.functional.interpolate` in mode 'nearest'."""
def upsample_nearest_3d(x: _Tensor, *scales: typing.Any, output_size: _types.IntOrInts | None = None, align_corners: typing.Any = None, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return `nn.functional.interpolate` in mode 'nearest'."""
def upsample_trilinear_3d(x: _Tensor, *scales: typing.Any, output_size: _types.IntOrInts | None = None, align_corners: typing.Any = None, data_format: builtins.str = 'channels_first') -> _Tensor:
    """Return `nn.functional.interpolate` in mode 'trilinear'."""
def vector_norm(x: _Tensor, ord: builtins.float | builtins.str = 2, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the norm of the elements as one vector, or along dims."""
