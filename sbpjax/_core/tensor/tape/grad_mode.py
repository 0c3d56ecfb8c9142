"""Grad modes: ``no_grad``, ``enable_grad``, ``set_grad_enabled``, ``inference_mode``; contexts and decorators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from itertools import chain, repeat, starmap
from typing import Any, ParamSpec, Self, TypeVar, overload

from sbpjax._core.runtime.context_exit import ContextExit, restore_last
from sbpjax._core.tensor.handle.mode import mode as _mode  # PyTorch's argument has its name

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Context:
    """A grad mode as a context manager, and as a decorator of functions and generators."""

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return wrapper

    def _generator(self, function: Callable[_P, Any]) -> Callable[_P, Any]:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            # the mode holds while the generator's own code runs, not while its caller's does
            inner = function(*args, **kwargs)
            answer = None
            while True:
                try:
                    with self._again():
                        value = inner.send(answer)
                except StopIteration as stop:
                    return stop.value
                answer = yield value

        return wrapper

    def _again(self) -> Any:
        return type(self)()


class no_grad(_Context):
    """Record nothing: results do not require grad.

    Example:
        >>> w = sbpjax.ones(2, requires_grad=True)
        >>> with sbpjax.no_grad():
        ...     (w * 2).requires_grad
        False
    """

    _value = False
    _before: list

    @overload
    def __new__(cls, function: None = None) -> Self: ...

    @overload
    def __new__(cls, function: Callable[_P, _R]) -> Callable[_P, _R]: ...

    def __new__(cls, function: Callable | None = None) -> Any:
        """Return the context, or the function that runs in it."""
        self = super().__new__(cls)
        if function is not None:  # `@no_grad` without parentheses
            return self(function)
        self._before = []
        return self

    def __enter__(self) -> Self:
        # A list, since one context object may be entered again while it is entered.
        self._before.append(_mode.grad)
        _mode.grad = self._value
        return self

    __exit__ = ContextExit(lambda self: restore_last(_mode, "grad", self._before))


class enable_grad(no_grad):
    """Record again, inside a `no_grad` block."""

    _value = True


class set_grad_enabled(_Context):
    """Switch recording on or off; takes effect at once, and as a context it is undone at its end.

    Args:
        mode: whether to record.
        is_train: OneFlow's name of it.
    """

    def __init__(self, mode: bool = True, *, is_train: bool | None = None) -> None:
        self._before = _mode.grad
        self._enabled = bool(mode if is_train is None else is_train)
        _mode.grad = self._enabled

    # As a decorator it must not switch anything now: the switch of the constructor is undone, and `_again` switches
    # per call.
    def __call__(self, function):
        _mode.grad = self._before
        return super().__call__(function)

    def _again(self):
        return set_grad_enabled(self._enabled)

    def __enter__(self):
        _mode.grad = self._enabled
        return self

    __exit__ = ContextExit(lambda self: map(setattr, (_mode,), ("grad",), (self._before,)))


class inference_mode(_Context):
    """Record nothing, as `no_grad`; `is_inference_mode_enabled` returns True.

    Args:
        mode: False makes it do nothing.
    """

    _enabled: bool
    _before: list

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...

    @overload
    def __new__(cls, mode: Callable[_P, _R]) -> Callable[_P, _R]: ...

    def __new__(cls, mode: bool | Callable = True) -> Any:
        """Return the context, or the function that runs in it."""
        self = super().__new__(cls)
        if callable(mode):  # `@inference_mode` without parentheses
            self._enabled = True
            return _Context.__call__(self, mode)
        self._enabled = bool(mode)
        self._before = []
        return self

    def _again(self):
        return inference_mode(self._enabled)

    def __enter__(self):
        self._before.append((_mode.grad, _mode.inference))
        if self._enabled:
            _mode.grad, _mode.inference = False, True
        return self

    __exit__ = ContextExit(
        lambda self: map(
            setattr, repeat(_mode), ("grad", "inference"), chain.from_iterable(starmap(self._before.pop, ((),)))
        )
    )


def is_grad_enabled() -> bool:
    """Return whether ops are recorded now."""
    return _mode.grad


def is_inference_mode_enabled() -> bool:
    """Return whether `inference_mode` is on."""
    return _mode.inference
