"""What layers compute: products, convolutions, pooling, norms, images, losses; the names of `nn.functional`.

A split batch needs no communication; what a split of other dims costs is said with each op.
"""

from __future__ import annotations

from ..table import op

WHERE = "data_format"

op("nn.functional.linear(input, weight, bias=None)", "linalg.linear", amp="lower")
op("nn.functional.bilinear(input1, input2, weight, bias=None)", "linalg.bilinear", also=".bilinear",
   amp="accelerator:widest")  # fmt: skip
op("nn.functional.pad(input, pad, mode='constant', value=None)", "arrange.pad", also=".pad")
op("nn.functional.pdist(input, p=2.0)", "distance.pdist", also=".pdist")

for _n in (1, 2, 3):
    op(f"nn.functional.conv{_n}d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)",
       f"conv.conv{_n}d", also=f".conv{_n}d", channels="channel_pos weight", amp="lower")  # fmt: skip
    op(f"nn.functional.conv_transpose{_n}d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, "
       "dilation=1)", f"conv.conv_transpose{_n}d", also=f".conv_transpose{_n}d", channels="data_format first",
       amp="lower")  # fmt: skip
    _amp = "cpu:float32" if _n == 3 else ""
    op(f"nn.functional.max_pool{_n}d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
       "return_indices=False)", f"pool.max_pool{_n}d", also=f".max_pool{_n}d", channels=WHERE, amp=_amp)  # fmt: skip
    op(f"nn.functional.avg_pool{_n}d(input, kernel_size, stride=None, padding=0, ceil_mode=False, "
       "count_include_pad=True, divisor_override=None)", f"pool.avg_pool{_n}d", also=".avg_pool1d" * (_n == 1),
       channels=WHERE, amp=_amp)  # fmt: skip
    op(f"nn.functional.adaptive_avg_pool{_n}d(input, output_size)", f"pool.adaptive_avg_pool{_n}d",
       also=f".adaptive_avg_pool{_n}d", strict=True, amp=_amp)  # fmt: skip
    op(f"nn.functional.adaptive_max_pool{_n}d(input, output_size, return_indices=False)",
       f"pool.adaptive_max_pool{_n}d", strict=True, amp=_amp)  # fmt: skip
    op(f"nn.functional.max_unpool{_n}d(input, indices, kernel_size, stride=None, padding=0, output_size=None)",
       f"unpool.max_unpool{_n}d")  # fmt: skip
    op(f"nn.functional.lp_pool{_n}d(input, norm_type, kernel_size, stride=None, ceil_mode=False)",
       f"unpool.lp_pool{_n}d")  # fmt: skip

op("nn.functional.group_norm(input, num_groups, weight=None, bias=None, eps=1e-05)", "norm.group_norm",
   also=".group_norm", amp="accelerator:float32")  # fmt: skip
op("nn.functional.normalize(input, p=2.0, dim=1, eps=1e-12)", "norm.normalize",
   oneflow="input p dim eps use_l2_norm_kernel!", amp="accelerator:float32")  # fmt: skip
op("nn.functional.cosine_similarity(x1, x2, dim=1, eps=1e-08)", "norm.cosine_similarity", also=".cosine_similarity",
   names={"x": "x1", "y": "x2"}, amp="accelerator:float32")  # fmt: skip
op("nn.functional.pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False)", "norm.pairwise_distance",
   also=".pairwise_distance", amp="accelerator:float32")  # fmt: skip
op("nn.functional.local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0)", "norm.local_response_norm")

op("nn.functional.unfold(input, kernel_size, dilation=1, padding=0, stride=1)", "resize.unfold",
   channels="data_format first")  # fmt: skip
op("nn.functional.fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1)", "resize.fold",
   channels="data_format first")  # fmt: skip
op("nn.functional.pixel_shuffle(input, upscale_factor)", "resize.pixel_shuffle", also=".pixel_shuffle")
op("nn.functional.pixel_unshuffle(input, downscale_factor)", "resize.pixel_unshuffle", also=".pixel_unshuffle")
op("nn.functional.channel_shuffle(input, groups)", "resize.channel_shuffle",
   also="native_channel_shuffle .channel_shuffle")  # fmt: skip

# PyTorch's `size_average` and `reduce`, which it gave up for `reduction`, decide where they are given
OLD = "size_average reduce"
op("nn.functional.binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction='mean')",
   "loss.binary_cross_entropy", ignores=OLD, amp="float32")  # fmt: skip
op("nn.functional.binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, "
   "reduction='mean', pos_weight=None)", "loss.binary_cross_entropy_with_logits", ignores=OLD,
   also=".binary_cross_entropy_with_logits", oneflow="flags input target weight pos_weight reduction",
   amp="float32")  # fmt: skip
op("nn.functional.margin_ranking_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, "
   "reduction='mean')", "loss.margin_ranking_loss", ignores=OLD, also=".margin_ranking_loss",
   amp="float32")  # fmt: skip
op("nn.functional.hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction='mean')",
   "loss.hinge_embedding_loss", ignores=OLD, also=".hinge_embedding_loss", amp="float32")  # fmt: skip
op("nn.functional.soft_margin_loss(input, target, size_average=None, reduce=None, reduction='mean')",
   "loss.soft_margin_loss", ignores=OLD, amp="float32")  # fmt: skip
op("nn.functional.cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, "
   "reduction='mean')", "loss.cosine_embedding_loss", ignores=OLD, also=".cosine_embedding_loss",
   amp="float32")  # fmt: skip
op("nn.functional.triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, "
   "size_average=None, reduce=None, reduction='mean')", "loss.triplet_margin_loss", ignores=OLD,
   also=".triplet_margin_loss", amp="float32")  # fmt: skip
op("nn.functional.poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08, "
   "reduce=None, reduction='mean')", "losses.poisson_nll_loss", ignores=OLD, also=".poisson_nll_loss")  # fmt: skip
op("nn.functional.multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, "
   "reduction='mean')", "losses.multi_margin_loss", ignores=OLD)  # fmt: skip
op("nn.functional.multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction='mean')",
   "losses.multilabel_margin_loss", ignores=OLD)  # fmt: skip
op("nn.functional.multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, "
   "reduction='mean')", "losses.multilabel_soft_margin_loss", ignores=OLD)  # fmt: skip
