"""PyTorch's place for these names: what waits for its first input."""

from sbpjax.nn.lazy import LazyModuleMixin as LazyModuleMixin
from sbpjax.nn.lazy import UninitializedTensorMixin as UninitializedTensorMixin

_UninitializedTensorMixin = UninitializedTensorMixin
