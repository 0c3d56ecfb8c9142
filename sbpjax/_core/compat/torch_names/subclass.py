"""Subclasses of `torch.Tensor`: methods and operators go through the class's ``__torch_function__``.

    class Image(torch.Tensor): ...

    image = torch.zeros(3, 4, 4).as_subclass(Image)
    image + 1                            # Image.__torch_function__(Tensor.__add__, (Image,), (image, 1), {})

The default keeps the class, as PyTorch's does; a class with a method of its own, as torchvision's images and boxes
have, decides by itself. Functions such as ``torch.cat([image])`` take a subclass as the tensor that it is, and return
tensors.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from sbpjax._core.functions.table.table import LazyMethod
from sbpjax._core.tensor import Tensor

_OPERATORS = """add radd iadd sub rsub isub mul rmul imul matmul rmatmul truediv rtruediv itruediv floordiv rfloordiv
    mod rmod pow rpow neg pos abs invert and rand or ror xor rxor eq ne lt le gt ge getitem setitem""".split()
_state = threading.local()


class DisableTorchFunctionSubclass:
    """Within the block, methods of subclasses are those of tensors."""

    def __enter__(self) -> None:
        _state.depth = getattr(_state, "depth", 0) + 1

    def __exit__(self, *error: Any) -> None:
        _state.depth -= 1


class _Override:
    """A method of tensors in a subclass: it calls the class's ``__torch_function__``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        function = getattr(Tensor, self.name)
        if instance is None:  # Python prefers a reflected operator of the right operand only if it is another object
            return self if self.name.startswith("__r") else function
        if getattr(_state, "depth", 0):
            return function.__get__(instance, owner)
        return functools.partial(_through, function, instance)

    def __call__(self, *args: Any) -> Any:
        return getattr(Tensor, self.name)(*args)


def _through(function: Callable, self: Any, *args: Any, **kwargs: Any) -> Any:
    cls = type(self)
    types = {type(x): None for x in (self, *args) if isinstance(x, Tensor) and type(x) is not Tensor}
    # the class itself first; another operand's class may refuse what it does not know
    for kind in dict.fromkeys([cls, *types]):
        found = kind.__torch_function__(function, tuple(types), (self, *args), kwargs)
        if found is not NotImplemented:
            return found
    names = ", ".join(kind.__name__ for kind in types)
    name = f"torch.Tensor.{function.__name__}"
    raise TypeError(f"Multiple dispatch failed for {name!r}; all __torch_function__ handlers of {names} refused")


def call_plain(func: Any, types: Any = (), args: Any = (), kwargs: Any = None) -> Any:
    """Call a function with a subclass's tensors taken as tensors: the ``__torch_function__`` that overrides nothing."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def _keep_class(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Return a function's tensors as ones of the class: the default ``__torch_function__``."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {})) if func is _AS_SUBCLASS else _convert(func(*args, **(kwargs or {})), cls)


def _convert(value: Any, cls: type) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, cls):
        return value.as_subclass(cls)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_convert(one, cls) for one in value])
    if type(value) in (tuple, list):
        return type(value)(_convert(one, cls) for one in value)
    return value


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False, **options: Any) -> Any:
    """Return a leaf of a subclass over a tensor's storage."""
    with DisableTorchFunctionSubclass():
        return data.detach().as_subclass(cls).requires_grad_(require_grad)


def _override_methods(cls: Any, **options: Any) -> None:
    """Give a new subclass the methods that go through its ``__torch_function__``."""
    super(Tensor, cls).__init_subclass__(**options)
    if cls.__module__.startswith("sbpjax.") or cls.__torch_function__ is call_plain:
        return
    between = cls.__mro__[: cls.__mro__.index(Tensor)]
    public = (name for name, value in vars(Tensor).items() if isinstance(value, LazyMethod) or callable(value))
    for name in [name for name in public if not name.startswith("_")] + [f"__{name}__" for name in _OPERATORS]:
        if name in vars(Tensor) and not any(name in vars(base) for base in between):
            setattr(cls, name, _Override(name))


_AS_SUBCLASS = Tensor.as_subclass
Tensor.__torch_function__ = classmethod(_keep_class)  # type: ignore[attr-defined]
Tensor.__init_subclass__ = classmethod(_override_methods)  # type: ignore[assignment]
Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]
