"""`Parameter` and `Buffer`: tensors that a module registers on assignment."""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.storage.payload import share_storage_of
from sbpjax.nn.names import not_tensor_error


class Parameter(Tensor):
    """A leaf tensor that registers itself when it is assigned to a module.

    Args:
        data: its value; the storage is shared.
        requires_grad: whether it gets a gradient; one of integers or bools gets none, as in OneFlow.

    Example:
        >>> class Scale(flow.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.scale = flow.nn.Parameter(flow.ones(2))
        ...
        >>> [name for name, _ in Scale().named_parameters()]
        ['scale']
    """

    __slots__ = ()

    # Not `__init__`: a subclass calls `super().__new__(cls, data)` from its own `__new__`, or has its own `__init__`.
    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            data = creation.empty(0)
        if not isinstance(data, Tensor):
            raise not_tensor_error("nn.Parameter(data)", data)
        self = object.__new__(cls)
        share_storage_of(self, data.detach())
        if requires_grad and (self.dtype.is_floating_point or self.dtype.is_complex):
            self.requires_grad_(True)
        return self

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that registers itself as a buffer when it is assigned to a module.

    Args:
        data: its value; the storage is shared.
        persistent: whether it belongs to `state_dict`.
    """

    __slots__ = ("persistent",)

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        if data is None:
            data = creation.empty(0)
        if not isinstance(data, Tensor):
            raise not_tensor_error("nn.Buffer(data)", data)
        share_storage_of(self, data.detach())
        self.persistent = persistent


def register_bias(module: Any, size: int, wanted: bool, device: Any, dtype: Any) -> None:
    """Give a module a ``bias`` of a size, or the name alone."""
    module.register_parameter("bias", parameter(size, device=device, dtype=dtype) if wanted else None)


def parameter(*size: int, device: Any = None, dtype: Any = None) -> Parameter:
    """Return a parameter with storage of its own, to be filled by an initialiser."""
    made = object.__new__(Parameter)
    share_storage_of(made, creation.empty(*size, device=device, dtype=dtype))
    made.requires_grad_(True)
    return made
