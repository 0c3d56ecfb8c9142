"""PyTorch's place for these names: batch normalisation with relu."""

from sbpjax.nn.batchnorm import FusedBatchNorm1d as FusedBatchNorm1d
from sbpjax.nn.batchnorm import FusedBatchNorm2d as FusedBatchNorm2d
from sbpjax.nn.batchnorm import FusedBatchNorm3d as FusedBatchNorm3d
from sbpjax.nn.batchnorm import _FusedBatchNorm as _FusedBatchNorm

_FusedNormBase = _FusedBatchNorm
