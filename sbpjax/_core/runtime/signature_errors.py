"""Errors of arguments that a signature does not have, or lacks."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, TypeVar

from sbpjax.errors import OpTypeError, SbpjaxError, nearest

# The errors of Python itself about the arguments of a call.
SIGNATURE_ERROR = re.compile(
    r"unexpected keyword|positional argument|required keyword|multiple values|too many positional|missing a required"
)
UNKNOWN_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")
_Class = TypeVar("_Class", bound=type)


def keyword_fix(unknown: str, allowed: Iterable[str], call: str) -> str:
    """Return the fix for an unexpected keyword: the name that was meant, if there is one, and the signature.

    Args:
        unknown: the keyword as given.
        allowed: the names of the arguments.
        call: the call with its arguments, as ``AdamW(params, lr=0.001)``.

    Example:
        >>> keyword_fix("learning_rate", ["params", "lr"], "SGD(params, lr=0.001)")
        'lr, not learning_rate: SGD(params, lr=0.001)'
    """
    meant = nearest(unknown, allowed)
    return f"{f'{meant}, not {unknown}' if meant else f'leave out {unknown}'}: {call}"


def strip_signature(signature: inspect.Signature, made: bool = False) -> inspect.Signature:
    """Return a signature without its types, and without the object that a constructor makes, as an error prints it."""
    made = made and next(iter(signature.parameters), "") == "self"
    plain = [p.replace(annotation=p.empty) for p in list(signature.parameters.values())[made:]]
    return signature.replace(parameters=plain, return_annotation=signature.empty)


def explain_arguments(cls: _Class) -> _Class:
    """Wrap the constructor and the public methods of a class: a wrong argument raises `OpTypeError` with the signature.

    Example:
        >>> @explain_arguments
        ... class Options:
        ...     def __init__(self, *, stage=1): ...
        >>> Options(stages=2)
        Traceback (most recent call last):
        OpTypeError: Options(...)
          seen: stages=2
          rule: got an unexpected keyword argument 'stages'
          fix:  stage, not stages: Options(*, stage=1)
    """
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and (name == "__init__" or name[0] != "_"):
            setattr(cls, name, with_signature_errors(member))
    return cls


def with_signature_errors(function: Callable) -> Callable:
    """Wrap a constructor or a method, see `explain_arguments`."""

    @functools.wraps(function)
    def public(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            trace = error.__traceback__
            if isinstance(error, SbpjaxError) or trace is None or trace.tb_next is not None:  # raised inside the call
                raise
            raise _signature_error(error, function, args, options) from None

    return public


def _signature_error(error: TypeError, function: Callable, args: tuple, options: dict[str, Any]) -> OpTypeError:
    name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
    signature = strip_signature(inspect.signature(function), True)
    seen = ", ".join([*map(_describe, args[1:]), *(f"{k}={_describe(v)}" for k, v in options.items())])
    return signature_error(name, signature, seen or "no arguments", str(error).rpartition("() ")[2])


def signature_error(name: str, signature: inspect.Signature, seen: str, rule: str) -> OpTypeError:
    """Return the error for arguments that a signature does not have, or lacks; Python's text is the rule."""
    unknown, call = UNKNOWN_KEYWORD.search(rule), f"{name}{signature}"
    fix = keyword_fix(unknown[1], signature.parameters, call) if unknown else call
    return OpTypeError(f"{name}(...)", seen, rule, fix)


def _describe(value: Any) -> str:
    return (
        f"{value!r:.60}"
        if isinstance(value, (str, int, float, list, tuple, dict, type(None)))
        else type(value).__name__
    )
