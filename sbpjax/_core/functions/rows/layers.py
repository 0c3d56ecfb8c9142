"""Op table: `nn.functional` (products, convolutions, pooling, norms, images, losses).

A split batch needs no communication; the cost of a split of other dims is documented with each op.
"""

from __future__ import annotations

from ..table.op_modules import (
    arrange,
    class_loss,
    conv,
    ctc,
    distance,
    grid_sample,
    grouped_matmul,
    loss,
    margin_loss,
    norm,
    pool,
    products,
    resize,
    unpool,
)
from ..table.table import FN, NN, alias, custom, note, op

WHERE = "data_format"
LAYERS = "sbpjax._core.functions.layers"

note("recurrent cell", amp="lower")  # ops of layers without a row

op("nn.functional.linear(input, weight, bias=None)", products.linear, amp="lower", out=NN)
op("nn.functional.grouped_matmul(input, weight, group_sizes)", grouped_matmul.grouped_matmul, amp="lower")
op("nn.functional.bilinear(input1, input2, weight, bias=None)", products.bilinear, also=".bilinear",
   amp="accelerator:widest")  # fmt: skip
op(
    "nn.functional.pad(input, pad, mode='constant', value=None)",
    arrange.pad,
    also=".pad",
    check="check_padding_value",
)
op("nn.functional.pdist(input, p=2.0)", distance.pdist, also=".pdist")

for _n in (1, 2, 3):
    op(f"nn.functional.conv{_n}d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)",
       getattr(conv, f"conv{_n}d"), also=f".conv{_n}d", channels="channel_pos weight", amp="lower")  # fmt: skip
    op(f"nn.functional.conv_transpose{_n}d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, "
       "dilation=1)", getattr(conv, f"conv_transpose{_n}d"), also=f".conv_transpose{_n}d _C.deconv{_n}d",
       channels="data_format first", amp="lower")  # fmt: skip
    _amp = "cpu:float32" if _n == 3 else ""
    op(f"nn.functional.max_pool{_n}d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
       "return_indices=False)", getattr(pool, f"max_pool{_n}d"), also=f".max_pool{_n}d", channels=WHERE,
       amp=_amp)  # fmt: skip
    op(f"nn.functional.avg_pool{_n}d(input, kernel_size, stride=None, padding=0, ceil_mode=False, "
       "count_include_pad=True, divisor_override=None)", getattr(pool, f"avg_pool{_n}d"),
       also=".avg_pool1d" * (_n == 1), channels=WHERE, amp=_amp, out=FN if _n == 1 else NN)  # fmt: skip
    op(f"nn.functional.adaptive_avg_pool{_n}d(input, output_size)", getattr(pool, f"adaptive_avg_pool{_n}d"),
       also=f".adaptive_avg_pool{_n}d", strict=True, amp=_amp)  # fmt: skip
    op(f"nn.functional.adaptive_max_pool{_n}d(input, output_size, return_indices=False)",
       getattr(pool, f"adaptive_max_pool{_n}d"), strict=True, amp=_amp)  # fmt: skip
    for _pool in (f"max_pool{_n}d", f"adaptive_max_pool{_n}d"):
        alias(f"nn.functional.{_pool}_with_indices(input: Tensor, *args, **options) -> tuple[Tensor, Tensor]",
              f"nn.functional.{_pool}(input, *args, **{{**options, 'return_indices': True}})",
              also=".adaptive_max_pool1d" * (_pool == "adaptive_max_pool1d"))  # fmt: skip
    op(f"nn.functional.max_unpool{_n}d(input, indices, kernel_size, stride=None, padding=0, output_size=None)",
       getattr(unpool, f"max_unpool{_n}d"), check="check_unpool_indices")  # fmt: skip
    op(f"nn.functional.lp_pool{_n}d(input, norm_type, kernel_size, stride=None, ceil_mode=False)",
       getattr(unpool, f"lp_pool{_n}d"))  # fmt: skip

for _n in (2, 3):
    custom(f"nn.functional.fractional_max_pool{_n}d", f"{LAYERS}.unpool")
    alias(
        f"nn.functional.fractional_max_pool{_n}d_with_indices(input: Tensor, kernel_size, *args, **options) -> tuple",
        f"nn.functional.fractional_max_pool{_n}d(input, kernel_size, *args, **{{**options, 'return_indices': True}})",
    )

op("nn.functional.group_norm(input, num_groups, weight=None, bias=None, eps=1e-05)", norm.group_norm,
   also=".group_norm", amp="accelerator:float32")  # fmt: skip
op("nn.functional.normalize(input, p=2.0, dim=1, eps=1e-12)", norm.normalize,
   oneflow="input p dim eps use_l2_norm_kernel!", amp="accelerator:float32")  # fmt: skip
op("nn.functional.cosine_similarity(x1, x2, dim=1, eps=1e-08)", norm.cosine_similarity,
   also=".cosine_similarity",
   names={"x": "x1", "y": "x2"}, amp="accelerator:float32")  # fmt: skip
op("nn.functional.pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False)", norm.pairwise_distance,
   also=".pairwise_distance", amp="accelerator:float32")  # fmt: skip
op("nn.functional.local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0)", norm.local_response_norm)

op("nn.functional.layer_norm(input, normalized_shape: int | tuple[int, ...], weight=None, bias=None, eps=1e-05)",
   norm.layer_norm, also=".layer_norm", amp="accelerator:float32")  # fmt: skip
op("nn.functional.rms_norm(input, normalized_shape: int | tuple[int, ...], weight=None, eps=None)",
   norm.rms_norm,
   also=".rms_norm", amp="accelerator:float32")  # fmt: skip
custom("native_layer_norm native_group_norm native_batch_norm", f"{LAYERS}.norm")
custom("native_dropout", f"{LAYERS}.dropout")
custom("nn.functional.batch_norm", f"{LAYERS}.norm", also=".batch_norm")
custom("nn.functional.instance_norm", f"{LAYERS}.norm", also=".instance_norm")
custom("nn.functional.scaled_dot_product_attention", f"{LAYERS}.attention", amp="lower")
custom("nn.functional.multi_head_attention_forward", f"{LAYERS}.multihead")
custom("nn.functional.dropout", f"{LAYERS}.dropout", also=".dropout")
custom("nn.functional.alpha_dropout", f"{LAYERS}.dropout", also=".alpha_dropout", strict=True)
custom("nn.functional.feature_alpha_dropout", f"{LAYERS}.dropout", also=".feature_alpha_dropout", strict=True)
custom("nn.functional.dropout1d nn.functional.dropout2d nn.functional.dropout3d", f"{LAYERS}.dropout", strict=True)
for _name in ("dropout", "alpha_dropout", "feature_alpha_dropout"):
    alias(f"{_name}_(input: Tensor, *args, **options)", f"nn.functional.{_name}(input, *args, inplace=True, **options)",
          text=f"Write `nn.functional.{_name}` into a tensor and return it.")  # fmt: skip
custom("nn.functional.embedding", f"{LAYERS}.embedding")
custom("nn.functional.embedding_bag", f"{LAYERS}.embedding", also=".embedding_bag")
custom("nn.functional.one_hot", f"{LAYERS}.embedding", names={"input": "tensor"})
custom("nn.functional.depend", "sbpjax._core.functions.oneflow.kernels")

# ------------------------------------------------------------------------------------------------------------- images

op(
    "nn.functional.affine_grid(theta, size: Sequence[int], align_corners=None)",
    grid_sample.affine_grid,
    check="check_affine_maps",
)
op("affine_grid_generator(theta, size: Sequence[int], align_corners: bool)", grid_sample.affine_grid, out=False)
op("nn.functional.grid_sample(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None)",
   grid_sample.grid_sample)  # fmt: skip
alias("grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool)",
      "nn.functional.grid_sample(input, grid, ('bilinear', 'nearest', 'bicubic')[interpolation_mode], "
      "('zeros', 'border', 'reflection')[padding_mode], align_corners)", also="grid_sampler_2d grid_sampler_3d",
      text="Return `nn.functional.grid_sample` with modes by number.")  # fmt: skip
op("nn.functional.deform_conv2d(input, offset, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), "
   "mask=None)", grid_sample.deform_conv2d)  # fmt: skip
op("nn.functional.interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None, "
   "recompute_scale_factor=None, antialias=False)", resize.interpolate)  # fmt: skip
alias("nn.functional.upsample(input: Tensor, size=None, scale_factor=None, mode: str = 'nearest', "
      "align_corners: bool | None = None)",
      "nn.functional.interpolate(input, size, scale_factor, mode, align_corners)")  # fmt: skip
alias("nn.functional.upsample_nearest(input: Tensor, size=None, scale_factor=None)",
      "nn.functional.interpolate(input, size, scale_factor)")  # fmt: skip
alias("nn.functional.upsample_bilinear(input: Tensor, size=None, scale_factor=None)",
      "nn.functional.interpolate(input, size, scale_factor, mode='bilinear', align_corners=True)")  # fmt: skip
alias("nn.functional.interpolate_like(input: Tensor, like: Tensor, mode: str = 'nearest', "
      "align_corners: bool | None = None)",
      "nn.functional.interpolate(input, tuple(like.shape[2:]), None, mode, align_corners)")  # fmt: skip
custom("nms roi_align _C.roi_pool", "sbpjax._core.functions.boxes")
op("nn.functional.unfold(input, kernel_size, dilation=1, padding=0, stride=1)", resize.unfold,
   channels="data_format first")  # fmt: skip
op("nn.functional.fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1)", resize.fold,
   channels="data_format first")  # fmt: skip
op("nn.functional.pixel_shuffle(input, upscale_factor)", resize.pixel_shuffle, also=".pixel_shuffle")
op("nn.functional.pixel_unshuffle(input, downscale_factor)", resize.pixel_unshuffle, also=".pixel_unshuffle")
op("nn.functional.channel_shuffle(input, groups)", resize.channel_shuffle,
   also="native_channel_shuffle .channel_shuffle")  # fmt: skip

# PyTorch's `size_average` and `reduce`, which it gave up for `reduction`, decide where they are given
OLD = "size_average reduce"
op("nn.functional.mse_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None)",
   loss.mse_loss, ignores=OLD, amp="float32")  # fmt: skip
op("nn.functional.l1_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None)",
   loss.l1_loss, ignores=OLD, amp="float32")  # fmt: skip
op("nn.functional.smooth_l1_loss(input, target, size_average=None, reduce=None, reduction='mean', beta=1.0)",
   loss.smooth_l1_loss, ignores=OLD, oneflow="flags logits=input label=target beta reduction",
   amp="float32")  # fmt: skip
op("nn.functional.huber_loss(input, target, reduction='mean', delta=1.0, weight=None)", loss.huber_loss,
   amp="float32")  # fmt: skip
op("nn.functional.kl_div(input, target, size_average=None, reduce=None, reduction='mean', log_target=False)",
   loss.kl_div, ignores=OLD, also=".kl_div", oneflow="flags input target log_target reduction",
   amp="float32")  # fmt: skip
op("nn.functional.cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, "
   "reduction='mean', label_smoothing=0.0)", class_loss.cross_entropy, ignores=OLD, check="check_class_weights",
   oneflow="flags input target weight ignore_index reduction label_smoothing", amp="float32")  # fmt: skip
op("nn.functional.linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, "
   "reduction='mean', ignore_index=None, label_smoothing=0.0, options=None, z_loss=0.0)",
   class_loss.linear_cross_entropy, check="check_linear_class_targets", amp="lower", ignores="options")  # fmt: skip
op("nn.functional.nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, "
   "reduction='mean')", class_loss.nll_loss, ignores=OLD, check="check_class_weights", amp="float32")  # fmt: skip
op("nn.functional.binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction='mean')",
   loss.binary_cross_entropy, ignores=OLD, check="check_probabilities", amp="float32")  # fmt: skip
op("nn.functional.binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, "
   "reduction='mean', pos_weight=None)", loss.binary_cross_entropy_with_logits, ignores=OLD,
   also=".binary_cross_entropy_with_logits", oneflow="flags input target weight pos_weight reduction",
   amp="float32")  # fmt: skip
op("nn.functional.margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, "
   "reduction='mean')", loss.margin_ranking_loss, ignores=OLD, also=".margin_ranking_loss",
   amp="float32")  # fmt: skip
op("nn.functional.hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction='mean')",
   loss.hinge_embedding_loss, ignores=OLD, also=".hinge_embedding_loss", amp="float32")  # fmt: skip
op("nn.functional.soft_margin_loss(input, target, size_average=None, reduce=None, reduction='mean')",
   loss.soft_margin_loss, ignores=OLD, amp="float32")  # fmt: skip
op("nn.functional.cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, "
   "reduction='mean')", loss.cosine_embedding_loss, ignores=OLD, also=".cosine_embedding_loss",
   amp="float32")  # fmt: skip
op("nn.functional.triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, "
   "size_average=None, reduce=None, reduction='mean')", loss.triplet_margin_loss, ignores=OLD,
   check="check_margin", also=".triplet_margin_loss", amp="float32")  # fmt: skip
op("nn.functional.poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08, "
   "reduce=None, reduction='mean')", loss.poisson_nll_loss, ignores=OLD, also=".poisson_nll_loss",
   amp="float32")  # fmt: skip
op("nn.functional.multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, "
   "reduction='mean')", margin_loss.multi_margin_loss, ignores=OLD, check="check_multi_margin_loss")  # fmt: skip
op("nn.functional.multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction='mean')",
   margin_loss.multilabel_margin_loss, ignores=OLD, check="check_multilabel_targets")  # fmt: skip
op("nn.functional.multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, "
   "reduction='mean')", margin_loss.multilabel_soft_margin_loss, ignores=OLD)  # fmt: skip
op(
    "nn.functional.combined_margin_loss(input, label, m1=1.0, m2=0.0, m3=0.0)",
    margin_loss.combined_margin_loss,
)
note("sparse_softmax_cross_entropy", amp="float32")
alias("nn.functional.sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor)",
      "_C.sparse_softmax_cross_entropy(logits, labels)")  # fmt: skip
custom("nn.functional.gaussian_nll_loss nn.functional.triplet_margin_with_distance_loss", f"{LAYERS}.loss")
custom("nn.functional.ctc_loss", f"{LAYERS}.ctc", also=".ctc_loss")
op("nn.functional.ctc_greedy_decoder(log_probs, input_lengths, merge_repeated=True) -> tuple[Tensor, Tensor]",
   ctc.ctc_greedy_decoder)  # fmt: skip
