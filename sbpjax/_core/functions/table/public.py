"""Public wrapper of functions: argument aliases, OneFlow's argument order, ``out=`` and argument errors.

One Python call wraps the function, with all of these:

    flow.sum(x, axis=1)            → sum(x, dim=1)             NumPy's names
    flow.addmm(c, a, b, 2.0, 3.0)  → addmm(c, a, b, alpha=2.0, beta=3.0)      OneFlow's order
    flow.hstack(xs, out=y)         → into_out(y, hstack(xs))
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from sbpjax._core.tensor.calls.argument_errors import (
    call_error,
    call_override,
    mismatch_error,
    retry_with_plain_values,
    with_argument_errors,
)
from sbpjax._core.tensor.calls.argument_names import (
    FORMS,
    NOTHING,
    REST,
    are_flags,
    oneflow_parameter_order,
    parse_form,
    rename_arguments,
)
from sbpjax._core.tensor.calls.binding import into_out
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.plain_values import to_python_value
from sbpjax.errors import OpError


def public(
    function: Callable, names: dict[str, str], oneflow: str = "", out: bool = False, strict: bool = False
) -> Any:
    """Return a function as users call it.

    ``names``: other names of arguments; aliases of unknown parameters are left out.
    """
    parameters = inspect.signature(function).parameters
    first = next(iter(parameters), "")
    if first in ("self", "input") and function.__name__ != "__init__":
        names = {**dict.fromkeys(("x", "input"), first), **names}
    takes = {there: here for there, here in names.items() if here in parameters or here in (REST, NOTHING)}
    takes.update((there, here) for there, here in parse_form(oneflow) if there != here)
    takes = {
        a: b for a, b in takes.items() if a not in parameters or parameters[a].kind is inspect.Parameter.VAR_POSITIONAL
    }
    order, same = oneflow_parameter_order(oneflow, list(parameters.values()))
    out = out and "out" not in parameters
    # A function that makes a tensor of numbers makes it in the dtype of ``out=``.
    dtype_at = _place_of_dtype(parameters) if out and {"dtype", "device"} <= parameters.keys() else -1
    if not (takes or order or out):
        return with_argument_errors(function, strict)
    flags = oneflow.startswith("flags ")
    known, longest = takes.keys(), len(order)
    same = same if order else sys.maxsize

    @functools.wraps(function)
    def call(*args, **options):
        target = None
        if options and not known.isdisjoint(options):
            args, options = rename_arguments(first, takes, args, options)
        if same < len(args) <= longest and not (flags and are_flags(args[same : same + 2])):
            given = {name: value for name, value in zip(order[same:], args[same:]) if name != NOTHING}
            if given.keys().isdisjoint(options):
                args, options = args[:same], {**given, **options}
        if out and options:  # after OneFlow's order, which may have ``out`` by position
            target = options.pop("out", None)
            if target is not None and len(args) <= dtype_at:
                options["dtype"] = _dtype_of_out(function, target, options.get("dtype"))
        if strict:
            wrong = mismatch_error(function, args, options)
            if wrong is not None:
                args, options = to_python_value(args), to_python_value(options)
                if mismatch_error(function, args, options) is not None:
                    raise wrong
        try:
            result = function(*args, **options)
        except Exception as error:
            again = call_override(call, args, options) or retry_with_plain_values(error, function, args, options)
            if again is None:
                better = call_error(error, function, args, options)
                if better is error:
                    raise
                raise better from None
            (result,) = again
        return result if target is None else into_out(target, result)

    chosen: Any = call
    chosen.takes, chosen.oneflow, chosen.has_argument_errors = takes, oneflow, True
    if out:
        chosen.__signature__ = _with_out(inspect.signature(function))
    return chosen


def _place_of_dtype(parameters: Mapping[str, inspect.Parameter]) -> int:
    named = parameters["dtype"].kind is inspect.Parameter.KEYWORD_ONLY
    return sys.maxsize if named else list(parameters).index("dtype")


def _dtype_of_out(function: Callable, out: Any, dtype: Any) -> Any:
    """Return the dtype of a new tensor that is written into ``out``; a given dtype must be equal."""
    if dtype is not None and dtypes.as_dtype(dtype) != out.dtype:
        seen, rule = (
            f"out of {out.dtype.name}",
            f"dtype {dtypes.as_dtype(dtype).name} does not match dtype of out parameter",
        )
        raise OpError(f"{function.__name__}(..., dtype=..., out=...)", seen, rule, "leave out dtype=")
    return out.dtype


def add_oneflow_arguments(space: dict[str, Any], namespace: str) -> None:
    """Add OneFlow's arguments to functions and classes of a module.

    Args:
        space: the module's ``globals()``, whose functions are replaced.
        namespace: the part of `FORMS`.
    """
    for form, names in FORMS[namespace].items():
        for name in names.split():
            found = space.get(name)
            if isinstance(found, type):
                if getattr(found.__init__, "oneflow", None) != form:
                    found.__init__ = public(found.__init__, {}, form)
            elif found is not None:
                space[name] = public(found, {}, form)


def _with_out(signature: inspect.Signature) -> inspect.Signature:
    option = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = list(signature.parameters.values())
    place = next((i for i, p in enumerate(parameters) if p.kind is p.VAR_KEYWORD), len(parameters))
    return signature.replace(parameters=[*parameters[:place], option, *parameters[place:]])
