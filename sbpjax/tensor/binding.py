"""From an op's signature to a public function: ``softmax(x, /, dim)`` becomes ``softmax(input, dim)``.

Positional-only parameters of an op are its tensors, the rest are static attributes. The common forms, one or two
tensors and no attributes, are bound to a function that calls dispatch directly; any other form sorts its arguments by
name first.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np

from sbpjax.errors import OpTypeError, message

from . import dispatch
from . import dtype as dtypes
from .argument_names import NUMPY
from .inplace import inplace as write_into
from .oneflow_arguments import renames
from .op import op_of
from .tensor import Tensor
from .wrong_call import of_call, told, told_once

_MISSING = inspect.Parameter.empty


def hashable(value):
    """Return a static attribute as a hashable value: lists become tuples, 0-d tensors numbers, dtypes NumPy dtypes."""
    if value.__class__ is int or value.__class__ is float or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return tuple([hashable(v) for v in value])
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, dtypes.dtype):
        return value.np
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tuple(hashable(v) for v in value.tolist())
    return value


def into_out(out, result):
    """Write the result of a function into its ``out=`` argument and return that."""
    if isinstance(result, tuple):
        for target, value in zip(out, result, strict=True):
            into_out(target, value)
        return out
    from .inplace import assign_out

    return assign_out(out, result)


def publish(space: dict, names: str, out: bool = True) -> None:
    """Make functions of a module public: they take ``out=`` and say in the usual words what is no tensor.

    Args:
        space: the module's ``globals()``, whose functions are replaced.
        names: the functions' names.
        out: whether they take ``out=`` (those that return views do not).
    """
    for name in names.split():
        space[name] = _public(space[name], name, out)


def _public(fn, name: str, takes_out: bool):
    if not takes_out or "out" in inspect.signature(fn).parameters:
        return told_once(fn)
    plain = told_once(fn)

    @functools.wraps(fn)
    def public_with_out(*args, out=None, **options):
        result = plain(*args, **options)
        return result if out is None else into_out(out, result)

    return public_with_out


def _wants_tensor(name: str, value) -> OpTypeError:
    seen = f"{type(value).__name__} as its first argument"
    return OpTypeError(message(f"{name}(...)", seen, "its first argument is a tensor", "sbpjax.tensor(value)"))


def must_be_tensor(name: str, value) -> None:
    """Refuse what is no tensor, for functions that would return it as it is."""
    if not isinstance(value, Tensor):
        raise _wants_tensor(name, value)


def listed(tensors, asked: str) -> tuple:
    """Return the tensors of a list that a function was given, and refuse anything else."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise OpTypeError(
            message(
                asked, f"a {type(tensors).__name__}", "the tensors come as one list or tuple", f"{asked[:-5]}([x, y])"
            )
        )
    for position, x in enumerate(tensors):
        if not hasattr(x, "shape"):
            rule = f"expected Tensor as element {position}, but got {type(x).__name__}"
            raise OpTypeError(message(asked, f"a {type(x).__name__}", rule, "sbpjax.tensor(value)"))
    return tuple(tensors)


class Form:
    """The call form of an op: the names and defaults of its tensors, then of its attributes."""

    __slots__ = ("also", "defaults", "fn", "index", "name", "names", "tensors")

    def __init__(self, fn, names: tuple[str, ...], name: str, defaults: dict | None = None) -> None:
        parameters = inspect.signature(fn).parameters.values()
        tensors = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
        self.fn, self.name = fn, name
        self.tensors = len(tensors)
        self.names = (*names[: len(tensors)], *[p.name for p in tensors[len(names) :]])
        self.names += tuple(p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY)
        self.defaults = [(defaults or {}).get(p.name, p.default) for p in parameters]
        self.index = {key: i for i, key in enumerate(self.names)}
        self.also = {**NUMPY, **renames(name)}

    def sort(self, args: tuple, options: dict) -> tuple:
        """Return the op for the given attributes, and the given tensors."""
        if len(args) > len(self.names):
            raise self._wrong(f"{len(args)} arguments", f"it takes at most {len(self.names)}")
        values = [*args, *self.defaults[len(args) :]]
        for key, value in options.items():
            i = self.index.get(key)
            i = self.index.get(self.also.get(key)) if i is None else i
            if i is None or i < len(args):
                raise self._wrong(f"argument {key!r}", f"it takes {', '.join(self.names)}, each once")
            values[i] = value
        for key, value in zip(self.names, values):
            if value is _MISSING:
                raise self._wrong(f"no {key!r}", f"{key!r} is required")
        count = self.tensors
        static = tuple(
            [
                (key, dtypes.np_of(value) if key == "dtype" else hashable(value))
                for key, value in zip(self.names[count:], values[count:])
            ]
        )
        return op_of(self.fn, static), tuple(values[:count])

    def _wrong(self, seen: str, rule: str) -> OpTypeError:
        return OpTypeError(message(f"{self.name}(...)", seen, rule, f"{self.name}{self.signature()}"))

    def signature(self) -> inspect.Signature:
        """Return the form as Python's own signature."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(k, kind, default=d) for k, d in zip(self.names, self.defaults)])

    def types(self) -> dict[str, str]:
        """Return what the op says of the types of its parameters."""
        of_fn = inspect.signature(self.fn).parameters.values()
        types = ["Tensor" if p.kind is p.POSITIONAL_ONLY else p.annotation for p in of_fn]
        return {key: said for key, said in zip(self.names, types) if said is not _MISSING}


def _named(function, fn, name: str, doc: str | None = None):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc or fn.__doc__
    function.__module__ = "sbpjax"
    return function


def bind(fn, names: tuple[str, ...] = ("input", "other"), name: str | None = None, defaults: dict | None = None):
    """Return the public function of an op.

    Args:
        fn: a function of `sbpjax.ops`.
        names: what the tensor parameters are called, first to last; those beyond keep the op's own names.
        name: what the function is called, if not as the op.
        defaults: other defaults than the op's.
    """
    name = name or fn.__name__
    form = Form(fn, names, name, defaults)
    if (
        form.names in (("input",), ("input", "other"))
        and form.tensors == len(form.names)
        and _MISSING is form.defaults[-1]
    ):
        return _named((_unary if form.tensors == 1 else _binary)(op_of(fn), name), fn, name)

    def public(*args, out=None, **options):
        try:
            op, tensors = form.sort(args, options)
            result = dispatch.run(op, tensors)
            return result if out is None else into_out(out, result)
        except Exception as error:
            better = of_call(error, public, args, options)
            if better is error:
                raise
            raise better from None

    public.__signature__ = form.signature()
    public.__annotations__ = form.types()
    public.is_told = True
    public.also_takes = form.also
    return _named(public, fn, name)


def _unary(op, name: str):
    def public(input=_MISSING, *rest, **options):
        if input.__class__ is Tensor and not options and not rest:
            return dispatch.unary(op, input)
        return by_name((input, *rest), options)

    def plain(input, *, out=None):
        result = dispatch.run(op, (input,))
        return result if out is None else into_out(out, result)

    by_name = _by_name(plain, name)
    return _with_signature(public, plain)


def _binary(op, name: str):
    def public(input=_MISSING, other=_MISSING, *rest, **options):
        if input.__class__ is Tensor and other is not _MISSING and not options and not rest:
            return dispatch.binary(op, input, other)
        return by_name((input, other, *rest), options)

    def plain(input, other, *, out=None, inplace=False):
        if inplace:
            return write_into(input, op, (other,))
        result = dispatch.run(op, (input, other))
        return result if out is None else into_out(out, result)

    by_name = _by_name(plain, name)
    return _with_signature(public, plain)


def _by_name(plain, name: str):
    """Return the way of a call that has more than its tensors in their order: with names, with ``out=``, or wrong."""
    plain.__name__ = name
    function = told(plain)

    def by_name(args: tuple, options: dict):
        if args[0] is _MISSING and "x" in options:  # OneFlow calls the tensor x
            options["input"] = options.pop("x")
        if args[0] is _MISSING and args[-1] is not _MISSING:
            return function(other=args[1], **options)
        return function(*[x for x in args if x is not _MISSING], **options)

    return by_name


def _with_signature(public, plain):
    public.__signature__ = inspect.signature(plain)
    public.is_told = True
    return public


def _inplace_unary(op):
    def method(self):
        return write_into(self, op)

    return method


def _inplace_binary(op):
    def method(self, other):
        return write_into(self, op, (other,))

    return method


def inplace_of(fn, name: str, names: tuple[str, ...] = ()):
    """Return the in-place method of an op, ``x.add_(y)`` of ``add``; ``names`` are those of the tensors behind x."""
    form = Form(fn, ("self", *(names or ("other",))), name)
    if form.tensors > 2 and not names:
        form = Form(fn, ("self",), name)
    doc = f"Write the result of `{fn.__name__}` into this tensor and return it."
    if form.names == ("self",):
        return _named(_inplace_unary(op_of(fn)), fn, name, doc)
    if form.names == ("self", "other"):
        return _named(_inplace_binary(op_of(fn)), fn, name, doc)

    def method(*args, **options):
        op, tensors = form.sort(args, options)
        return write_into(tensors[0], op, tensors[1:])

    method.__signature__ = form.signature()
    return _named(method, fn, name, doc)
