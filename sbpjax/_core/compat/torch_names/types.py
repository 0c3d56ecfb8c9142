"""`torch.types` and `torch.nn.common_types`: names for annotations."""

from __future__ import annotations

import builtins
import types
import typing
from collections.abc import Sequence
from typing import Any, TypeVar, Union

from sbpjax._core.tensor import Tensor as Tensor
from sbpjax._core.tensor.handle.device import device
from sbpjax._core.tensor.handle.dtype import dtype
from sbpjax._core.tensor.handle.size import Size

T = TypeVar("T")
Number = Union[builtins.int, builtins.float, builtins.bool]  # noqa: UP007  # scripts look into its arguments
Device = Union[device, str, builtins.int, None]  # noqa: UP007
FileLike = Any
Storage = Any
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]  # noqa: UP007
_size = Union[Size, list[builtins.int], tuple[builtins.int, ...]]  # noqa: UP007
_dtype, _device, _bool, _int, _float, _complex = dtype, device, builtins.bool, builtins.int, builtins.float, complex
_layout = _qscheme = Any
SymInt = builtins.int

_scalar_or_tuple_any_t = Union[T, tuple[T, ...]]  # noqa: UP007
_scalar_or_tuple_1_t = _scalar_or_tuple_2_t = _scalar_or_tuple_3_t = _scalar_or_tuple_4_t = _scalar_or_tuple_any_t
_size_any_t = _size_1_t = _size_2_t = _size_3_t = _size_4_t = _size_5_t = _size_6_t = Union[int, tuple[int, ...]]  # noqa: UP007
_size_any_opt_t = _size_2_opt_t = _size_3_opt_t = Any
_ratio_2_t = _ratio_3_t = _ratio_any_t = Union[float, tuple[float, ...]]  # noqa: UP007
_tensor_list_t = Union[Tensor, list[Tensor]]  # noqa: UP007
_maybe_indices_t = Any


class _IsTensor(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_IsTensor):
    """The older name of a tensor with gradients: ``Variable(x)`` is a tensor of the same values.

    Args:
        data: a tensor.
        requires_grad: whether it requires gradients.
        volatile: accepted, as PyTorch does.
    """

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad)


def is_of_type(obj: Any, target_type: Any) -> bool:
    """Return whether a value is of a type, of one of a tuple, or a container whose items are: ``list[int]``."""
    if isinstance(target_type, tuple):
        return any(is_of_type(obj, one) for one in target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return target_type is Any or isinstance(obj, target_type or type(None))
    if origin in (Union, types.UnionType):
        return is_of_type(obj, args)
    if not isinstance(obj, origin):
        return False
    if origin is dict:
        return all(is_of_type(key, args[0]) and is_of_type(value, args[1]) for key, value in obj.items())
    if origin is tuple and args[1:] != (...,):
        return len(obj) == len(args) and all(map(is_of_type, obj, args))
    return all(is_of_type(item, args[0]) for item in obj)
