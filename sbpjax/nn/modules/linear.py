"""PyTorch's place for these names: linear layers."""

from sbpjax.nn.lazy import LazyLinear as LazyLinear
from sbpjax.nn.linear import Bilinear as Bilinear
from sbpjax.nn.linear import Identity as Identity
from sbpjax.nn.linear import Linear as Linear
from sbpjax.nn.linear import NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear
