"""Op table: kernel names and call forms of OneFlow's ``_C``, apart from functions of other packages.

A kernel that is an op here, ``_C.fused_glu``, is planned as a whole; another form of existing calls is an `alias`.
"""

from __future__ import annotations

from ..table.op_modules import attention, class_loss, gather
from ..table.table import alias, custom, op

KERNELS = "sbpjax._core.functions.oneflow.kernels"
ATTENTION = "sbpjax._core.functions.oneflow.attention"

# ---------------------------------------------------------------------------------------------------------- own kernels

op("_C.fused_fast_gelu_mul(x, multiplier)", attention.fast_gelu_mul)
op("_C.fused_scale_mask_softmax(x, mask, fill_value=0.0, scale=1.0)", attention.scale_mask_softmax)
op("_C.fused_bias_add_gelu(a, b, axis)", attention.bias_add_gelu)
op("_C.fused_scale_tril(x, diagonal=0, fill_value=0.0, scale=1.0)", attention.scale_tril)
op("_C.fused_glu(x, w, b=None, v=None, c=None, activation='none')", attention.glu)
op(
    "_C.fused_self_attention(hidden_states, head_size=8, alpha=1.0) -> tuple[Tensor, Tensor]",
    attention.self_attention,
    out=False,
)
op("_C.bias_add(x, bias, axis=1)", attention.bias_add, out=False)
op("_C.gather(x, indices, axis=0)", gather.slices, out=False)
op("_C.sparse_softmax_cross_entropy(logits, label, depth: int | None = None)",
   class_loss.sparse_softmax_cross_entropy, ignores="depth", check="check_depth", out=False)  # fmt: skip
custom("_C.normalization _C.normalization_add_relu _C.skip_layer_norm _C.skip_rms_norm", KERNELS)
custom("_C.fused_bias_add_dropout _C.fused_scale_mask_softmax_dropout", KERNELS)
custom("_C.fused_bias_add_scale_mask_softmax_dropout _C.fused_scale_tril_softmax_mask_scale", KERNELS)
custom("_C.fused_matmul_bias _C.fused_mlp _C.fused_matmul_bias_add_relu_dropout", KERNELS)
custom("_C.fused_weighted_sum _C.fused_clip_grad", KERNELS)
custom("_C.arg_sort _C.reduce_prod", KERNELS)
custom("_C.amp_white_identity _C.amp_black_identity", KERNELS, names={"in": "x"})
custom("broadcast_like roc_auc_score", KERNELS)
custom("_C.fused_multi_head_attention_inference_v2", ATTENTION)
for _name in ("nearest_1d", "nearest_2d", "nearest_3d", "linear_1d", "bilinear_2d", "bicubic_2d", "trilinear_3d"):
    custom(f"_C.upsample_{_name}", KERNELS)

# ------------------------------------------------------------------------------------------------- other forms of calls

alias("_C.identity(x: Tensor)", "x.clone()")
alias("_C.batch_matmul(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0)",
      "matmul(a, b, transpose_a, transpose_b, alpha)")  # fmt: skip
alias("_C.matrix_vector_product(input: Tensor, vec: Tensor)", "input.mv(vec)")
alias("_C.linalg_cross(input: Tensor, other: Tensor, dim: int | None = None)", "cross(input, other, dim)")
alias("_C.constant(shape, value, *, dtype, device=None)", "full(tuple(shape), value, dtype=dtype, device=device)")
alias("_C.global_constant(shape, value, *, dtype, placement, sbp)",
      "full(tuple(shape), value, dtype=dtype, placement=placement, sbp=sbp)")  # fmt: skip
alias("_C.global_empty(shape, *, dtype, placement, sbp)", "empty(*shape, dtype=dtype, placement=placement, sbp=sbp)")
alias("_C.global_arange(start, end=None, step=1, *, dtype=None, placement, sbp)",
      "arange(start, end, step, dtype=dtype, placement=placement, sbp=sbp)")  # fmt: skip
alias("_C.copy(x: Tensor, device_type: str, device_id: int = 0, pin_memory: bool = False)",
      "x.to(f'{device_type}:{device_id}')")  # fmt: skip
alias("_C.dim_gather(input: Tensor, dim: int, index: Tensor, sparse_grad: bool = False)", "input.gather(dim, index)")
alias("_C.expand_dims(input: Tensor, dim: int)", "input.unsqueeze(dim)")
alias("_C.reshape_like(input: Tensor, like: Tensor)", "input.reshape(like.shape)")
alias("_C.split_like(x: Tensor, like: Sequence[Tensor], axis: int) -> tuple",
      "x.split([y.shape[axis] for y in like], axis)")  # fmt: skip
alias("_C.unfold_tensor(x: Tensor, dimension: int, size: int, step: int)", "x.unfold(dimension, size, step)")
alias("_C.tensor_setitem(x: Tensor, index, value) -> None",
      "x.__setitem__(tuple(index) if isinstance(index, list) else index, value)")  # fmt: skip
alias("_C.scatternd(indices: Tensor, updates: Tensor, shape)", "scatter_nd(indices, updates, shape)")
alias("_C.scatterndlike(like: Tensor, updates: Tensor, indices: Tensor)",
      "scatter_nd(indices, updates, tuple(like.shape))")  # fmt: skip
alias("_C.select_top_n(inputs: Sequence[Tensor], n: int) -> tuple", "tuple(inputs[:n])")

alias("_C.rint(x: Tensor)", "x.round()")
alias("_C.trunc_divide(input: Tensor, other, inplace: bool = False)",
      "(input.div_ if inplace else input.div)(other, rounding_mode='trunc')")  # fmt: skip
alias("_C.reciprocal_no_nan(x: Tensor)", "x.masked_fill(x == 0, 1).reciprocal().masked_fill(x == 0, 0)")
alias("_C.sqrt_square_sum(x: Tensor)", "x.norm()")
alias("_C.host_scalar_add_by_tensor(x: Tensor, scalar: Tensor)", "x + scalar")
alias("_C.fast_gelu(x: Tensor)", "nn.functional.gelu(x, approximate='tanh')")
alias("_C.gelu_with_approximate(x: Tensor, approximate: str = 'none')",
      "nn.functional.gelu(x, approximate=approximate)")  # fmt: skip

for _name in ("sum", "mean", "nansum", "any", "all"):
    alias(f"_C.reduce_{_name}(x: Tensor, dim=None, keepdim: bool = False, **options)",
          f"x.{_name}(dim, keepdim and dim is not None, **options)")  # fmt: skip
for _name in ("max", "min"):
    alias(f"_C.reduce_{_name}(x: Tensor, axis=None, keepdim: bool = False)",
          f"x.a{_name}(axis, keepdim and axis is not None)")  # fmt: skip
alias("_C.reduce_sum_like(x: Tensor, like: Tensor, axis=())",
      "(x.sum(tuple(axis)) if len(axis) else x).reshape(like.shape)")  # fmt: skip
alias("_C.unsorted_segment_sum(x: Tensor, segment_ids: Tensor, axis: int, num_segments: int)",
      "x.new_zeros(*[num_segments if d == axis % x.ndim else n for d, n in enumerate(x.shape)])"
      ".index_add(axis, segment_ids, x)")  # fmt: skip
alias("_C.unsorted_segment_sum_like(x: Tensor, segment_ids: Tensor, like: Tensor, axis: int)",
      "_C.unsorted_segment_sum(x, segment_ids, axis, like.shape[axis])")  # fmt: skip

alias("_C.layer_norm(x: Tensor, begin_norm_axis: int, begin_params_axis: int, epsilon: float)",
      "nn.functional.layer_norm(x, x.shape[begin_norm_axis % x.ndim:], eps=epsilon)")  # fmt: skip
alias("_C.layer_norm_affine(x: Tensor, gamma: Tensor, beta: Tensor, begin_norm_axis: int, begin_params_axis: int, "
      "epsilon: float)",
      "nn.functional.layer_norm(x, x.shape[begin_norm_axis % x.ndim:], gamma, beta, epsilon)")  # fmt: skip
alias("_C.rms_norm(x: Tensor, weight: Tensor | None = None, normalized_shape=None, epsilon: float = 1e-06)",
      "nn.functional.rms_norm(x, normalized_shape, weight, epsilon)")  # fmt: skip
alias("_C.rms_layer_norm(hidden_states: Tensor, weight: Tensor, variance_epsilon: float)",
      "nn.functional.rms_norm(hidden_states, hidden_states.shape[-1:], weight, variance_epsilon)")  # fmt: skip
alias("_C.grouped_matmul(xs: Sequence[Tensor], weights: Sequence[Tensor]) -> tuple",
      "tuple(nn.functional.linear(x, w) for x, w in zip(xs, weights, strict=True))")  # fmt: skip
alias("_C.grouped_matmul_bias(xs: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor]) -> tuple",
      "tuple(nn.functional.linear(x, w, b) for x, w, b in zip(xs, weights, biases, strict=True))")  # fmt: skip
alias("_C.fused_scale_mask_bias_softmax(x: Tensor, mask: Tensor, bias: Tensor | None = None, scale: float = 0.35355, "
      "inplace: bool = False)",
      "(x * scale + mask if bias is None else x * scale + mask + bias).softmax(-1)")  # fmt: skip
alias("_C.fused_multi_head_attention_inference(query: Tensor, key: Tensor, value: Tensor, num_heads: int, "
      "causal: bool = False)",
      "_C.fused_multi_head_attention_inference_v2(query=query, query_layout='BM(HK)', "
      "query_head_size=query.shape[-1] // num_heads, key=key, value=value, causal=causal)")  # fmt: skip

REDUCED = "reduction: str = 'mean'"
alias("_C.cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, "
      f"{REDUCED}, label_smoothing: float = 0.0)",
      "nn.functional.cross_entropy(input, target, weight, ignore_index=ignore_index, reduction=reduction, "
      "label_smoothing=label_smoothing)")  # fmt: skip
alias("_C.binary_cross_entropy_with_logits_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, "
      f"pos_weight: Tensor | None = None, {REDUCED})",
      "nn.functional.binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight, "
      "reduction=reduction)")  # fmt: skip
alias(f"_C.binary_cross_entropy_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, {REDUCED})",
      "nn.functional.binary_cross_entropy(input, target, weight, reduction=reduction)")  # fmt: skip
for _name in ("l1_loss", "mse_loss"):
    alias(f"_C.{_name}(input: Tensor, target: Tensor, {REDUCED})",
          f"nn.functional.{_name}(input, target, reduction=reduction)")  # fmt: skip
alias(f"_C.kl_div_loss(input: Tensor, target: Tensor, log_target: bool = False, {REDUCED})",
      "nn.functional.kl_div(input, target, reduction=reduction, log_target=log_target)")  # fmt: skip
alias("_C.softmax_cross_entropy(logits: Tensor, label: Tensor)", "-(label * logits.log_softmax(-1)).sum(-1)")
alias("_C.sparse_cross_entropy(prediction: Tensor, label: Tensor, depth: int)",
      "-prediction.gather(-1, label.unsqueeze(-1).long()).squeeze(-1).log()")  # fmt: skip
alias("_C.fused_get_intersection_area(b1_x1, b1_x2, b2_x1, b2_x2, b1_y1, b1_y2, b2_y1, b2_y2)",
      "(b1_x2.minimum(b2_x2) - b1_x1.maximum(b2_x1)).clamp(min=0) "
      "* (b1_y2.minimum(b2_y2) - b1_y1.maximum(b2_y1)).clamp(min=0)")  # fmt: skip
alias("_C.fused_get_iou(w1: Tensor, h1: Tensor, w2: Tensor, h2: Tensor, inter: Tensor, eps: float)",
      "inter / (w1 * h1 + w2 * h2 - inter + eps)")  # fmt: skip
