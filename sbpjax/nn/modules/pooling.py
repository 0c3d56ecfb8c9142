"""PyTorch's place for these names: pooling."""

from sbpjax.nn.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from sbpjax.nn.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from sbpjax.nn.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from sbpjax.nn.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from sbpjax.nn.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from sbpjax.nn.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from sbpjax.nn.pooling import AvgPool1d as AvgPool1d
from sbpjax.nn.pooling import AvgPool2d as AvgPool2d
from sbpjax.nn.pooling import AvgPool3d as AvgPool3d
from sbpjax.nn.pooling import MaxPool1d as MaxPool1d
from sbpjax.nn.pooling import MaxPool2d as MaxPool2d
from sbpjax.nn.pooling import MaxPool3d as MaxPool3d
from sbpjax.nn.pooling import _AdaptiveAvgPool as _AdaptiveAvgPool
from sbpjax.nn.pooling import _AdaptiveMaxPool as _AdaptiveMaxPool
from sbpjax.nn.pooling import _AvgPool as _AvgPool
from sbpjax.nn.pooling import _MaxPool as _MaxPool
from sbpjax.nn.unpooling import FractionalMaxPool2d as FractionalMaxPool2d
from sbpjax.nn.unpooling import FractionalMaxPool3d as FractionalMaxPool3d
from sbpjax.nn.unpooling import LPPool1d as LPPool1d
from sbpjax.nn.unpooling import LPPool2d as LPPool2d
from sbpjax.nn.unpooling import LPPool3d as LPPool3d
from sbpjax.nn.unpooling import MaxUnpool1d as MaxUnpool1d
from sbpjax.nn.unpooling import MaxUnpool2d as MaxUnpool2d
from sbpjax.nn.unpooling import MaxUnpool3d as MaxUnpool3d
from sbpjax.nn.unpooling import _LPPool as _LPPool
from sbpjax.nn.unpooling import _MaxUnpool as _MaxUnpool

_MaxPoolNd = _MaxPool

_AvgPoolNd, _AdaptiveAvgPoolNd, _AdaptiveMaxPoolNd = _AvgPool, _AdaptiveAvgPool, _AdaptiveMaxPool
_LPPoolNd, _MaxUnpoolNd = _LPPool, _MaxUnpool
