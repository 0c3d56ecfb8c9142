"""PyTorch's place for these names: batch normalisation."""

from sbpjax.nn.batchnorm import BatchNorm1d as BatchNorm1d
from sbpjax.nn.batchnorm import BatchNorm2d as BatchNorm2d
from sbpjax.nn.batchnorm import BatchNorm3d as BatchNorm3d
from sbpjax.nn.batchnorm import SyncBatchNorm as SyncBatchNorm
from sbpjax.nn.batchnorm import _BatchNorm as _BatchNorm
from sbpjax.nn.batchnorm import _NormBase as _NormBase
from sbpjax.nn.lazy import LazyBatchNorm1d as LazyBatchNorm1d
from sbpjax.nn.lazy import LazyBatchNorm2d as LazyBatchNorm2d
from sbpjax.nn.lazy import LazyBatchNorm3d as LazyBatchNorm3d
from sbpjax.nn.lazy import _LazyNorm as _LazyNorm

_LazyNormBase = _LazyNorm
