"""API lifecycle: decorators for stages of public names and for deprecation.

    @at_stage("pre-alpha")
    def auto_stages(...): ...

    @deprecated(since="0.3", instead="sbpjax.summary", gone="0.5")
    def describe(...): ...

A name without a mark is at the stage of its feature, which `docs/reference/stages.md` lists; the reference shows marks.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from sbpjax._core.runtime.user_line import warn

_F = TypeVar("_F", bound=Callable)


def at_stage(stage: str) -> Callable[[_F], _F]:
    """Return a decorator that marks a function or class with its stage, in its docstring and as ``__stage__``.

    Args:
        stage: a stage of `docs/reference/stages.md`, such as ``"pre-alpha"``.

    Example:
        >>> @at_stage("pre-alpha")
        ... def f():
        ...     '''Return nothing.'''
        >>> f.__stage__
        'pre-alpha'
    """

    def decorate(found: _F) -> _F:
        found.__stage__ = stage  # type: ignore[attr-defined]
        found.__doc__ = _with_note(found, f"Stage: {stage}; see docs/reference/stages.md.")
        return found

    return decorate


def deprecated(*, since: str, instead: str, gone: str) -> Callable[[_F], _F]:
    """Return a decorator of a deprecated function: each call warns at the caller's line.

    Args:
        since: the version that warns first.
        instead: the replacement.
        gone: the version that will not have it; at least one minor version later.

    Example:
        >>> @deprecated(since="0.3", instead="g", gone="0.5")
        ... def f():
        ...     '''Return one.'''
        ...     return 1
        >>> f.__deprecated__
        'f is deprecated since 0.3 and will be gone in 0.5: write g'
    """

    def decorate(function: _F) -> _F:
        text = f"{function.__qualname__} is deprecated since {since} and will be gone in {gone}: write {instead}"

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            warn(text, FutureWarning)
            return function(*args, **kwargs)

        wrapper.__deprecated__ = text  # type: ignore[attr-defined]
        wrapper.__doc__ = _with_note(function, f"Deprecated since {since}, gone in {gone}: write `{instead}`.")
        return wrapper  # type: ignore[return-value]

    return decorate


def _with_note(found: Any, note: str) -> str:
    """Return a docstring with a paragraph after its first one."""
    first, _, rest = (inspect.getdoc(found) or "").partition("\n\n")
    return "\n\n".join(filter(None, (first, note, rest)))
