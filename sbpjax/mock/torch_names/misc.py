"""Small modules of PyTorch that libraries import: `torch._utils`, `torch._jit_internal`, `torch.hub`'s like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .jit import Final as Final
from .jit import export as export
from .jit import ignore as ignore
from .jit import unused as unused


def _take_tensors(tensors, size_limit: int):
    """Yield lists of tensors of one dtype, each up to a size in bytes."""
    held: dict = {}
    for tensor in tensors:
        size, items = held.get(tensor.dtype, (0, []))
        size += tensor.numel() * tensor.element_size()
        items.append(tensor)
        if size >= size_limit:
            yield items
            size, items = 0, []
        held[tensor.dtype] = (size, items)
    yield from (items for _, items in held.values() if items)


def _flatten_dense_tensors(tensors):
    """Return all elements of some tensors as one vector."""
    from sbpjax.functions import cat

    return cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors) -> tuple:
    """Return the parts of a vector in the shapes of some tensors."""
    parts, start = [], 0
    for t in tensors:
        parts.append(flat[start : start + t.numel()].reshape(t.shape))
        start += t.numel()
    return tuple(parts)


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Callable, if_false: Callable, *rest, **options
):
    """Return a function that calls one of two, by one of its arguments."""

    def dispatched(*args, **kwargs):
        chosen = kwargs.get(arg_name, args[arg_index] if len(args) > arg_index else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    return dispatched


def _overload(fn):
    """Return the function itself."""
    return fn


_overload_method = _copy_to_script_wrapper = _overload
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list


def _element_size(dtype) -> int:
    """Return the bytes of one element of a dtype."""
    return dtype.itemsize


def _get_device_index(device, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the number of a device."""
    from sbpjax.tensor import device as devices

    if device is None:
        return 0
    return device if isinstance(device, int) else devices.device(device).index or 0


def _rebuild_parameter(data, requires_grad: bool = True, backward_hooks=None):
    """Return a parameter."""
    from sbpjax.nn.parameter import Parameter

    return Parameter(data, requires_grad)


class ExceptionWrapper:
    """An exception of another process or thread, kept with its traceback.

    Args:
        exc_info: as of ``sys.exc_info()``; that of now by default.
        where: where it was raised.
    """

    def __init__(self, exc_info=None, where: str = "in background") -> None:
        import sys
        import traceback

        kind, value, trace = exc_info or sys.exc_info()
        self.exc_type: Any = kind
        self.where = where
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))

    def reraise(self) -> None:
        """Raise it again, with the other traceback in its text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


class KeyErrorMessage(str):
    """A text that is shown as it is in a KeyError."""

    def __repr__(self) -> str:
        return str(self)
