"""Argument errors of public functions: messages in four parts, of the exception class that PyTorch raises.

    sbpjax.softmax(x, dimm=1)     OpTypeError   seen: ... dimm=1      rule: got an unexpected keyword argument 'dimm'
                                                fix:  dim, not dimm: softmax(input, dim=None, *, dtype=None, out=None)
    sbpjax.narrow(x, "a", 0, 1)   OpTypeError   seen: dim='a'         rule: 'dim' is an int

The public functions of a namespace are wrapped; the library's own calls go to the functions themselves. A call that
works pays for one more Python call (about 70 ns); annotations and signatures are read after a failure. An error of
the user's own code, such as a hook or a distance function, passes through unchanged.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import re
import types
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from sbpjax._core.runtime.signature_errors import SIGNATURE_ERROR, UNKNOWN_KEYWORD, signature_error, strip_signature
from sbpjax._core.runtime.sizes import out_of_memory
from sbpjax._core.runtime.user_line import is_users_file
from sbpjax.errors import OpError, OpTypeError, SbpjaxError

from ..handle.plain_values import to_python_value
from ..handle.tensor import Tensor
from .op_errors import describe_value, public_call_error

# Functions that would take "no" for True, or 2.5 for 2, themselves; none of them is fast.
_TYPED = frozenset(
    """alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d""".split()
)


def add_argument_errors(space: type | dict[str, Any]) -> None:
    """Wrap the public functions of a namespace or a class with argument errors."""
    members = vars(space) if isinstance(space, type) else space
    for name, member in list(members.items()):
        if name.startswith("_") or member is (public := add_errors_once(member)):
            continue
        if isinstance(space, type):
            setattr(space, name, public)
        else:
            space[name] = public


def add_constructor_errors(space: dict[str, Any], base: type) -> None:
    """Wrap ``__init__`` of the classes of a namespace that are subclasses of ``base``."""
    layers = [member for member in space.values() if isinstance(member, type) and issubclass(member, base)]
    # Also bases that the namespace does not show: their constructor is the one that raises.
    for cls in {parent for layer in layers for parent in layer.__mro__}:
        init = vars(cls).get("__init__")
        if init is not None and issubclass(cls, base) and cls is not base and not hasattr(init, "has_argument_errors"):
            cls.__init__ = with_argument_errors(init)


def add_errors_once(member: Any) -> Any:
    """Return a function wrapped with argument errors; anything else, or an already wrapped one, unchanged."""
    own = isinstance(member, types.FunctionType) and member.__module__.startswith("sbpjax")
    return (
        with_argument_errors(member, member.__name__ in _TYPED)
        if own and not hasattr(member, "has_argument_errors")
        else member
    )


def with_argument_errors(function: Callable, typed: bool = False) -> Callable:
    """Return a function whose wrong calls raise argument errors.

    Args:
        function: a function whose errors may be those of Python, NumPy or JAX.
        typed: whether to check the arguments before each call, for a function that would turn 2.5 into 2 itself.
    """

    @functools.wraps(function)
    def public(*args, **options):
        try:
            return function(*args, **options)
        except Exception as error:
            again = call_override(public, args, options) or retry_with_plain_values(error, function, args, options)
            if again is not None:
                return again[0]
            better = call_error(error, function, args, options)
            if better is error:
                raise
            raise better from None

    @functools.wraps(function)
    def constructor(*args, **options):
        # Not on failure only: a layer keeps its options for later.
        return public(
            *[args[0], *map(to_python_value, args[1:])], **{k: to_python_value(v) for k, v in options.items()}
        )

    @functools.wraps(function)
    def typed_public(*args, **options):
        wrong = mismatch_error(function, args, options)
        if wrong is not None:
            again = retry_with_plain_values(wrong, function, args, options)
            if again is None:
                raise wrong
            return again[0]
        return public(*args, **options)

    chosen: Any = typed_public if typed else constructor if function.__name__ == "__init__" else public
    chosen.has_argument_errors = True
    return chosen


def call_override(function: Callable, args: tuple, options: dict[str, Any]) -> tuple | None:
    """Call the ``__torch_function__`` of arguments that are no tensors, as TensorDicts; return its result in a tuple.

    Such a call fails without it, so that only failures pay for the search. None where no argument has one that answers.
    """
    values = [one for v in (*args, *options.values()) for one in (v if isinstance(v, (list, tuple)) else (v,))]
    kinds = {type(v): None for v in values if hasattr(v, "__torch_function__") and not isinstance(v, (Tensor, type))}
    for kind in kinds:
        found = kind.__torch_function__(function, tuple(kinds), args, options)
        if found is not NotImplemented:
            return (found,)
    return None


def retry_with_plain_values(error: Exception, function: Callable, args: tuple, options: dict[str, Any]) -> tuple | None:
    """Repeat a failed call with plain values; return its result in a tuple, None if it fails or nothing changed."""
    if not isinstance(error, (TypeError, AttributeError, ValueError)):
        return None
    simple, named = to_python_value(args), to_python_value(options)
    if simple is args and named is options:
        return None
    try:
        if mismatch_error(function, simple, named) is not None:
            return None
        return (function(*simple, **named),)
    except Exception:  # the first error is of the values that the user gave
        return None


def call_error(error: Exception, function: Callable, args: tuple, options: dict[str, Any]) -> Exception:
    """Return the error to raise for a failed call: itself if it is complete or comes from the user's own code."""
    # An error from a hook or a callback is the user's own, and more precise than the call around it.
    if isinstance(error, OpTypeError) or _is_from_user_code(error):
        return error
    name = _name(function, args)
    if not isinstance(error, SbpjaxError):
        if isinstance(error, TypeError) and SIGNATURE_ERROR.search(str(error)):
            return _signature_error(error, function, args, options)
        full = out_of_memory(f"{name}(...)", _format_call(_displayed_arguments(function, args), options), error)
        if full is not None:
            return full
        if not isinstance(error, _RAW) or _is_jax_runtime_error(error):
            return error
    wrong = mismatch_error(function, args, options)
    if wrong is not None:
        return wrong
    return (
        error
        if isinstance(error, SbpjaxError)
        else public_call_error(error, name, _displayed_arguments(function, args), options)
    )


_RAW = (AttributeError, TypeError, ValueError, LookupError, ArithmeticError, AssertionError)


def _is_jax_runtime_error(error: Exception) -> bool:
    return type(error).__name__ in ("JaxRuntimeError", "XlaRuntimeError")


def _is_from_user_code(error: Exception) -> bool:
    """Return whether an error came through code that is neither the library's nor Python's own."""
    # From the second frame on: the first is this file's own.
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
    while trace is not None:
        if is_users_file(trace.tb_frame.f_code.co_filename):
            return True
        trace = trace.tb_next
    return False


def _signature_error(error: Exception, function: Callable, args: tuple, options: dict[str, Any]) -> OpTypeError:
    name, signature = _name(function, args), inspect.signature(function)
    rule = str(error).rpartition("() ")[2]
    # An unknown keyword is reported by the function itself, which takes more names than its signature has.
    if not UNKNOWN_KEYWORD.search(rule):
        try:
            signature.bind(*args, **options)
        # Bound again to the plain signature, the error of Python has the names that the user knows.
        except TypeError as plain:
            rule = str(plain)
    shown = strip_signature(signature, function.__name__ == "__init__")
    return signature_error(name, shown, _format_call(_displayed_arguments(function, args), options), rule)


def _name(function: Callable, args: tuple) -> str:
    """Return what users call a function; of a constructor, the class."""
    name = function.__name__
    return type(args[0]).__name__ if name == "__init__" else name


def _displayed_arguments(function: Callable, args: tuple) -> tuple:
    """Return the arguments that an error shows: not the half-made object of a constructor."""
    return args[1:] if function.__name__ == "__init__" else args


def _format_call(args: tuple, options: dict[str, Any]) -> str:
    return (
        ", ".join([*map(describe_value, args), *(f"{k}={describe_value(v)}" for k, v in options.items())])
        or "no arguments"
    )


# ------------------------------------------------------------------------------------------------------ types of values


def mismatch_error(function: Callable, args: tuple, options: dict[str, Any]) -> OpTypeError | None:
    """Return the error for the first argument that is not of its parameter's type, None if all are."""
    kinds = _kinds(function)
    for key, value in _given_arguments(function, args, options):
        wanted = kinds.get(key)
        if wanted is not None and not any(_FITS[kind](value) for kind in wanted):
            return _argument_type_error(_name(function, args), key, value, wanted)
    return None


# Attributes that a program holds as 64-bit integers: a larger one is found only when the program is lowered.
_OF_WINDOWS = frozenset(("dilation", "kernel_size", "output_padding", "padding", "stride"))
_LARGEST = 2**63 - 1


def check_attributes(fn: Callable, static: tuple) -> None:
    """Raise unless the attributes of an op have their declared types; called once per op, not per call."""
    kinds = _kinds(fn)
    for key, value in static:
        wanted = kinds.get(key)
        if wanted is not None and not any(_FITS[kind](value) for kind in wanted):
            raise _argument_type_error(fn.__name__, key, value, wanted)
        if key in _OF_WINDOWS:
            numbers = value if isinstance(value, (tuple, list)) else (value,)
            if any(isinstance(n, int) and n > _LARGEST for n in numbers):
                rule = f"Overflow when unpacking long: {key} is at most {_LARGEST}"
                raise OpError(f"{fn.__name__}(...)", f"{key}={describe_value(value)}", rule, f"{key}=1")


def _argument_type_error(name: str, key: str, value: Any, wanted: tuple[str, ...]) -> OpTypeError:
    rule = f"{key!r} is of type {' or '.join(_WORDS[kind] for kind in wanted)}"
    seen = f"{key}={describe_value(value)} of type {type(value).__name__}"
    return OpTypeError(f"{name}(...)", seen, rule, f"{key}={_EXAMPLES[wanted[0]]}")


def _given_arguments(function: Callable, args: tuple, options: dict[str, Any]) -> list[tuple[str, Any]]:
    try:
        bound = inspect.signature(function).bind(*args, **options).arguments
    except (TypeError, ValueError):
        return []
    return list(bound.items())


@functools.cache
def _kinds(function: Callable) -> dict[str, tuple[str, ...]]:
    """Return the types of a function's annotated parameters."""
    parameters = inspect.signature(function).parameters.values()
    types = getattr(function, "__annotations__", {})
    made = function.__name__ == "__init__"
    found = {p.name: _kinds_of(p, types.get(p.name, p.annotation), i == 0, made) for i, p in enumerate(parameters)}
    return {name: kinds for name, kinds in found.items() if kinds}


def _kinds_of(parameter: inspect.Parameter, hint: Any, first: bool, made: bool) -> tuple[str, ...]:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return ()
    if hint is parameter.empty:
        if isinstance(parameter.default, bool):
            return ("bool",)
        return ("Tensor",) if first and parameter.name in ("self", "input", "x", "A") and not made else ()
    kinds = kinds_of(hint if isinstance(hint, str) else getattr(hint, "__name__", ""))
    return (*kinds, "None") if kinds and parameter.default is None and "None" not in kinds else kinds


def kinds_of(annotation: str) -> tuple[str, ...]:
    """Return the types that an annotation names, none if one of them cannot be checked."""
    several = r"(tuple|list|Sequence)\[int[^\[\]]*\]"
    flat = re.sub(several, lambda found: found[1] if "None" in found[0] else "ints", annotation)
    flat = re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", flat))
    kinds = tuple(part.strip() for part in flat.split("|"))
    return kinds if all(kind in _FITS for kind in kinds) else ()


def _is_int(value: Any) -> bool:
    return hasattr(value, "__index__")


def _is_number(value: Any) -> bool:
    known = isinstance(value, (int, float, np.generic)) or hasattr(value, "__array__") or hasattr(value, "_array")
    return known or isinstance(value, (numbers.Real, Decimal))


def _is_tensor(value: Any) -> bool:
    return _is_number(value) or value is None or isinstance(value, (complex, list, tuple)) or hasattr(value, "shape")


def _is_several(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or hasattr(value, "shape")


def _is_ints(value: Any) -> bool:
    return hasattr(value, "shape") or isinstance(value, (list, tuple)) and all(map(_is_int, value))


_FITS: dict[str, Callable[[Any], bool]] = {
    "Tensor": _is_tensor,
    "int": _is_int,
    "float": _is_number,
    "complex": lambda value: _is_number(value) or isinstance(value, complex),
    "bool": lambda value: value is None or isinstance(value, (bool, int, np.bool_)) or hasattr(value, "_array"),
    "str": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
    "tuple": _is_several,
    "list": _is_several,
    "Sequence": _is_several,
    "Size": _is_ints,
    "ints": _is_ints,
}
_WORDS = {**{kind: kind for kind in _FITS}, "float": "float or int", "Sequence": "tuple or list"}
_WORDS.update(ints="tuple of ints", Size="tuple of ints")
_EXAMPLES = {
    "Tensor": "sbpjax.tensor(value)",
    "int": "1",
    "float": "1.0",
    "complex": "1.0",
    "bool": "True",
    "str": "'...'",
    "None": "None",
    "tuple": "(1, 2)",
    "list": "[1, 2]",
    "Sequence": "(1, 2)",
    "Size": "(1, 2)",
    "ints": "(1, 2)",
}
