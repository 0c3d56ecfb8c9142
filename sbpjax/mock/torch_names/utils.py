"""`torch.utils` and small modules below it that sbpjax has none of its own for."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from sbpjax.tensor import Tensor

deterministic = SimpleNamespace(fill_uninitialized_memory=True)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors: whoever holds the one now has the values, gradient and class of the other.

    Args:
        t1: the one.
        t2: the other.

    Raises:
        RuntimeError: one of them was computed and is part of a graph.
    """
    for t in (t1, t2):
        if t.grad_fn is not None:
            raise RuntimeError("swap_tensors exchanges tensors that were not computed: x.detach()")
    held = [(t._fresh()._array, t._layout, t.requires_grad, t.grad, type(t)) for t in (t1, t2)]
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for t, (array, layout, requires_grad, grad, kind) in zip((t1, t2), reversed(held), strict=True):
        t.grad = None
        t.__class__ = kind
        t.requires_grad_(False)._set(array, layout)
        t.requires_grad_(requires_grad).grad = grad


def set_module(obj: Any, mod: str) -> None:
    """Set the module that an object says it is from."""
    obj.__module__ = mod


def has_triton() -> bool:
    """Return False: no kernels are written in Triton here."""
    return False


has_triton_package = has_triton_tma = has_triton


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return False: no class of tensors wraps others."""
    return False


def not_none(obj: Any) -> Any:
    """Return an object that is not None."""
    if obj is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return obj


def copy_func_params(source: Callable) -> Callable:
    """Return a decorator that changes nothing: for type checkers."""
    return lambda function: function


class TorchDispatchMode:
    """A context in which no op is overridden: entering it raises, since ops do not pass through Python's hooks."""

    def __enter__(self) -> Any:
        raise NotImplementedError("TorchDispatchMode: ops do not pass through a dispatcher here")

    def __exit__(self, *exc: Any) -> None:
        pass
