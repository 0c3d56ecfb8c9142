"""Signals, regions of images, approximations of low rank, and the unblocked forms that few scripts call."""

from __future__ import annotations

from ..table import FN, METHOD, written

LOWRANK = "sbpjax.functions.low_rank"
SIGNAL = "sbpjax.functions.signal"
READ = FN | METHOD

written("stft", SIGNAL, READ, strict=True)
written("istft", SIGNAL, READ)
written("bartlett_window blackman_window hamming_window hann_window kaiser_window", SIGNAL, strict=True)
written("svd_lowrank pca_lowrank native_layer_norm native_dropout fill", LOWRANK)
written("grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator", LOWRANK)
written("dropout_ alpha_dropout_ feature_alpha_dropout_", LOWRANK)
written("lobpcg", "sbpjax.functions.extreme_eigenvalues")
written("nms roi_align", "sbpjax.functions.boxes")
written("from_dlpack to_dlpack", "sbpjax.functions.protocols")
written("roc_auc_score", "sbpjax.functions.oneflow_kernels")
