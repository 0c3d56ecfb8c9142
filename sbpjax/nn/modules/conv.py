"""PyTorch's place for these names: convolutions."""

from sbpjax.nn.conv import Conv1d as Conv1d
from sbpjax.nn.conv import Conv2d as Conv2d
from sbpjax.nn.conv import Conv3d as Conv3d
from sbpjax.nn.conv import _Conv as _Conv
from sbpjax.nn.conv_transpose import ConvTranspose1d as ConvTranspose1d
from sbpjax.nn.conv_transpose import ConvTranspose2d as ConvTranspose2d
from sbpjax.nn.conv_transpose import ConvTranspose3d as ConvTranspose3d
from sbpjax.nn.conv_transpose import _ConvTranspose as _ConvTranspose
from sbpjax.nn.lazy import LazyConv1d as LazyConv1d
from sbpjax.nn.lazy import LazyConv2d as LazyConv2d
from sbpjax.nn.lazy import LazyConv3d as LazyConv3d
from sbpjax.nn.lazy import LazyConvTranspose1d as LazyConvTranspose1d
from sbpjax.nn.lazy import LazyConvTranspose2d as LazyConvTranspose2d
from sbpjax.nn.lazy import LazyConvTranspose3d as LazyConvTranspose3d
from sbpjax.nn.lazy import _LazyConvXdMixin as _LazyConvXdMixin

_ConvNd = _Conv
_ConvTransposeNd = _ConvTranspose

_ConvTransposeMixin = _ConvTranspose
