"""Small modules of PyTorch that libraries import: `torch._utils`, `torch._jit_internal`, `torch.hub`'s like."""

from __future__ import annotations

from collections.abc import Callable

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
    import sbpjax

    return sbpjax.cat([t.reshape(-1) for t in tensors])


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
