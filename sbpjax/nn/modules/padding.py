"""PyTorch's place for these names: padding."""

from sbpjax.nn.padding import CircularPad1d as CircularPad1d
from sbpjax.nn.padding import CircularPad2d as CircularPad2d
from sbpjax.nn.padding import CircularPad3d as CircularPad3d
from sbpjax.nn.padding import ConstantPad1d as ConstantPad1d
from sbpjax.nn.padding import ConstantPad2d as ConstantPad2d
from sbpjax.nn.padding import ConstantPad3d as ConstantPad3d
from sbpjax.nn.padding import ReflectionPad1d as ReflectionPad1d
from sbpjax.nn.padding import ReflectionPad2d as ReflectionPad2d
from sbpjax.nn.padding import ReflectionPad3d as ReflectionPad3d
from sbpjax.nn.padding import ReplicationPad1d as ReplicationPad1d
from sbpjax.nn.padding import ReplicationPad2d as ReplicationPad2d
from sbpjax.nn.padding import ReplicationPad3d as ReplicationPad3d
from sbpjax.nn.padding import ZeroPad1d as ZeroPad1d
from sbpjax.nn.padding import ZeroPad2d as ZeroPad2d
from sbpjax.nn.padding import ZeroPad3d as ZeroPad3d
from sbpjax.nn.padding import _CircularPad as _CircularPad
from sbpjax.nn.padding import _ConstantPad as _ConstantPad
from sbpjax.nn.padding import _ReflectionPad as _ReflectionPad
from sbpjax.nn.padding import _ReplicationPad as _ReplicationPad

_CircularPadNd, _ConstantPadNd = _CircularPad, _ConstantPad
_ReflectionPadNd, _ReplicationPadNd = _ReflectionPad, _ReplicationPad
