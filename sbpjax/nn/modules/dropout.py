"""PyTorch's place for these names: random zeros."""

from sbpjax.nn.dropout import AlphaDropout as AlphaDropout
from sbpjax.nn.dropout import Dropout as Dropout
from sbpjax.nn.dropout import Dropout1d as Dropout1d
from sbpjax.nn.dropout import Dropout2d as Dropout2d
from sbpjax.nn.dropout import Dropout3d as Dropout3d
from sbpjax.nn.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from sbpjax.nn.dropout import _Dropout as _Dropout

_DropoutNd = _Dropout
