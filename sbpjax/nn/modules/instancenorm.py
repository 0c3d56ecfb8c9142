"""PyTorch's place for these names: instance normalisation."""

from sbpjax.nn.instancenorm import InstanceNorm1d as InstanceNorm1d
from sbpjax.nn.instancenorm import InstanceNorm2d as InstanceNorm2d
from sbpjax.nn.instancenorm import InstanceNorm3d as InstanceNorm3d
from sbpjax.nn.instancenorm import _InstanceNorm as _InstanceNorm
from sbpjax.nn.lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from sbpjax.nn.lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from sbpjax.nn.lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
