"""Code generation for rows of the table: writes the source of each function from the call form and compiles it.

    op("gather(input, dim, index, sparse_grad=False)", gather.gather, ignores="sparse_grad", check="check_index")

gives, since ``gather.gather(x, index, /, dim: int)`` has two tensors and one attribute,

    def gather(input: Tensor, dim: int, index: Tensor, sparse_grad=False, *, out: Tensor | None = None) -> Tensor:
        _check("gather", input=input, dim=dim, index=index)
        result = _run(_op_of(_fn, (("dim", _hashable(dim)),)), (input, index))
        return result if out is None else _into_out(out, result)

Python reads the arguments then, so that a call costs no more than a function written by hand, and `help` shows the
form. A call of one or two tensors and nothing else goes to dispatch at once.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import os
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core.tensor.calls.argument_names import NUMPY, REST
from sbpjax._core.tensor.calls.binding import into_out, list_tensors
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.dispatch.scalars import hashable
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.inplace import inplace as write_into

from . import checks, results, texts
from .channels import channels
from .checks import NUMBERS, raise_for_number, resolve_reduction
from .public import public
from .row import FN, NN, Row

_MISSING = inspect.Parameter.empty
_FOLDER = os.path.dirname(os.path.dirname(__file__))  # derived functions are the library's own in a traceback


def derive_function(row: Row, kind: str, at: Callable[[str, str], Callable | None]) -> Callable:
    """Return a function of a row: ``"function"``, ``"nn"`` (that of `nn.functional`), ``"method"`` or an in-place one.

    The in-place method (``"inplace"``) and function (``"inplace function"``) differ in the name of the first argument.
    ``at`` returns the function that the table has in a package under a name, for an alias.
    """
    if row.written:
        written = row.resolve()
        function = public(written, row.names, row.oneflow, bool(row.out), row.strict)
        function.__doc__ = texts.written_docstring(row.home, written, list(inspect.signature(function).parameters))
        return (
            set_public_name(function, row.name, function.__doc__, row.namespace)
            if function.__name__ != row.name
            else function
        )
    if row.call:
        return public(_make_alias(row, at), row.names, row.oneflow, bool(row.out), row.strict)
    if kind == "method":
        return _with_several(derive_function(row, "function", at))
    form = Form(row, row.resolve())
    plain = form.for_kind(kind)
    if row.channels:
        where, *more = row.channels.split()
        plain = channels(where, "weight" in more, "first" not in more)(plain)
    several = {p.name: REST for p in form.parameters if p.kind is p.VAR_POSITIONAL}
    function: Any = public(plain, {**NUMPY, **several, **row.names}, row.oneflow, strict=row.strict)
    if not form.attributes and not row.check:
        function = _add_fast_path(kind, form, function)
    return function


def _make_alias(row: Row, at: Callable[[str, str], Callable | None]) -> Any:
    """Return the function of an alias: it evaluates the expression of the row."""
    own = {p.arg for p in ast.walk(ast.parse(f"def f({row.arguments}): 0")) if isinstance(p, ast.arg)}
    space: dict[str, Any] = {"Tensor": Tensor, "Sequence": Sequence, "__name__": __name__}
    call = ast.unparse(_Named(own, space, at).visit(ast.parse(row.call, mode="eval")))
    if row.result:
        space["_Result"] = _named_tuple(row)
        call = f"_Result(*{call})"
    function = source_to_function(row.name, [row.arguments], [f"return {call}"], space, row.path, row.returns)
    return set_public_name(function, row.name, row.text or f"Return ``{row.call}``.", row.namespace)


def _named_tuple(row: Row) -> Any:
    return namedtuple(row.path.replace(".", "_"), row.result)


class _Named(ast.NodeTransformer):
    """Puts the table's functions that an expression calls into its namespace: `nn.functional.gelu` of gelu."""

    def __init__(self, own: set[str], space: dict[str, Any], at: Callable[[str, str], Callable | None]) -> None:
        self.own, self.space, self.at = own, space, at

    def visit_Call(self, node: ast.Call) -> ast.AST:
        namespace, _, name = ast.unparse(node.func).rpartition(".")
        if f"{namespace}.{name}".strip(".").partition(".")[0] not in self.own and (
            function := self.at(namespace, name)
        ):
            target = f"_of_{namespace}_{name}".replace(".", "_")
            self.space[target] = function
            node.func = ast.Name(target)
        return self.generic_visit(node)


def _with_several(function: Any) -> Any:
    """Return the method of a function whose second argument may be several: ``x.sum(0, 1)`` is ``x.sum((0, 1))``."""

    @functools.wraps(function)
    def method(self, *rest, **options):
        if len(rest) > 1 and isinstance(rest[1], int) and not isinstance(rest[1], bool):
            return function(self, rest, **options)
        return function(self, *rest, **options)

    return method


def set_public_name(function: Any, name: str, doc: str | None, namespace: str) -> Any:
    """Set the public name, docstring and module of a function."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__module__ = f"sbpjax.{namespace}".rstrip(".") if namespace != "Tensor" else "sbpjax"
    return function


def source_to_function(
    name: str, arguments: list[str], body: list[str], space: dict[str, Any], path: str, returns: str = "None"
) -> Any:
    """Return a function compiled from source: its name, its arguments and the lines of its body.

    Args:
        name: its name.
        arguments: its arguments, each with type and default.
        body: its lines.
        space: the namespace of the source.
        path: the name that a traceback shows instead of a file's.
        returns: the type that it returns.
    """
    lines = [f"def {name}({', '.join(arguments)}) -> {returns}:", *[f"    {line}" for line in body]]
    filename = os.path.join(_FOLDER, f"<{path}>")
    flags = __future__.annotations.compiler_flag
    exec(compile("\n".join(lines), filename, "exec", flags, dont_inherit=True), space)
    return space[name]


def layer_form(row: Row) -> tuple[str, list[str], list[str], dict[str, Any]]:
    """Return the name of a row's layer, its arguments as source, its options, and the namespace of the source."""
    name, _, given = row.layer.partition("(")
    form = Form(row, row.resolve(), given.removesuffix(")") if given else None)
    found = [p for p in form.parameters if p.name in form.attributes]
    arguments = [form.argument(p) for p in found]
    if row.inplace & NN:
        arguments.append("inplace: bool = False")
    options = [p.name for p in found] + ["inplace"] * bool(row.inplace & NN)
    return name, arguments, options, form.defaults


class Form:
    """A call form, read against the pure op.

    Attributes:
        tensors: the names of the op's tensors in the form, in the op's order.
        attributes: the names of its static attributes.
    """

    def __init__(self, row: Row, fn: Callable, given: str | None = None) -> None:
        self.row, self.fn = row, fn
        form = source_to_function("form", [row.arguments if given is None else given], ["pass"], {}, row.path)
        self.parameters = list(inspect.signature(form).parameters.values())
        op_docstring = list(inspect.signature(fn).parameters.values())
        self.types = {
            p.name: _format_type(p.annotation)
            for p in op_docstring
            if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)
        }
        ignored = [*row.ignores.split(), *["check_errors"] * bool(row.fails)]
        self.attributes = [p.name for p in self.parameters if p.name in self.types]
        self.tensors = [p.name for p in self.parameters if p.name not in self.types and p.name not in ignored]
        self.defaults = {f"_default_{p.name}": p.default for p in self.parameters if p.default is not _MISSING}
        self.takes_list = any(p.kind is p.VAR_POSITIONAL for p in op_docstring)  # ``cat(tensors)`` of ``cat(*arrays)``

    def for_kind(self, kind: str) -> Any:
        """Return the function of a kind."""
        row = self.row
        writes = kind.startswith("inplace")
        name = f"{row.name}_" if writes else row.name
        arguments, body = self._arguments(kind), self._body(kind)
        function = source_to_function(name, arguments, body, self._space(), row.path, row.returns)
        doc = self.text(list(inspect.signature(function).parameters), "self" if kind == "inplace" else "")
        if writes:
            doc = f"Write the result of `{row.name}` into the first tensor, which keeps its layout.\n\n{doc}"
        return set_public_name(function, name, doc, "nn.functional" if kind == "nn" else row.namespace)

    def text(self, parameters: list[str], first: str = "") -> str:
        """Return the docstring of a function with these parameters; its first tensor may have another name."""
        row, check = self.row, _check_of(self.row) if self.row.check else None
        tensors = [first, *self.tensors[1:]] if first else self.tensors
        parameters = [*parameters, *row.channels.split()[:1]]
        return texts.op_docstring(row.home, self.fn, tensors, parameters, row.ignores, check, row.text)

    def _arguments(self, kind: str) -> list[str]:
        """Return the arguments of the function as source."""
        found, by_name = [], []
        for i, p in enumerate(self.parameters):
            name = "self" if kind == "inplace" and not i else p.name
            if p.kind is p.VAR_POSITIONAL:
                found.append(f"*{name}")
                continue
            text = self.argument(p, name, i)
            (by_name if p.kind is p.KEYWORD_ONLY and not kind.startswith("inplace") else found).append(text)
        if self._takes_inplace(kind):
            (by_name or found).append("inplace: bool = False")
        if self._takes_out(kind):
            by_name.append("out: Tensor | None = None")
        if kind == "function" and self._is_pair():
            by_name.append("inplace: bool = False")
        if by_name and not any(text.startswith("*") for text in found):
            found.append("*")
        return [*found, *by_name]

    def argument(self, p: inspect.Parameter, name: str = "", place: int = 1) -> str:
        """Return one argument as source."""
        text = f"{name or p.name}: {self._type(p, place)}".removesuffix(": ")
        return text if p.default is _MISSING else f"{text} = _default_{p.name}"

    def _takes_inplace(self, kind: str) -> bool:
        return bool(self.row.inplace & {"function": FN, "nn": NN}.get(kind, 0))

    def _takes_out(self, kind: str) -> bool:
        return bool(self.row.out & {"function": FN, "nn": NN}.get(kind, 0))

    def _is_pair(self) -> bool:
        """Return whether this is a plain function of two tensors, which in OneFlow may write into the first."""
        return [p.name for p in self.parameters] == ["input", "other"]

    def must_be_tensors(self) -> bool:
        """Return whether this is a function of two tensors, not both of which may be numbers."""
        given = [p.name for p in self.parameters if p.default is _MISSING]
        return (
            len(self.tensors) == 2 and given[:2] == self.tensors and not self.takes_list and self.row.numbers != "all"
        )

    def _type(self, p: inspect.Parameter, place: int) -> str:
        if p.annotation is not _MISSING:
            return p.annotation
        if p.name in self.tensors:
            if self.takes_list:
                return "Sequence[Tensor]"
            if place and self.row.home.startswith(texts.WITH_NUMBERS):
                return ""
            return "Tensor | None" if p.default is None else "Tensor"
        old = "bool | None" if p.name in ("size_average", "reduce") else ""
        return self.types.get(p.name, old)

    def _body(self, kind: str) -> list[str]:
        row = self.row
        first, *others = ["self" if kind == "inplace" and not i else t for i, t in enumerate(self.tensors)]
        lines = []
        if self.must_be_tensors():
            here = [first, *others] if row.numbers != "other" else [first]
            which = " or " if row.numbers == "one" else " and "
            are = which.join(f"{t}.__class__ not in _NUMBERS" for t in here)
            lines.append(f"{are} or _raise_for_number({row.name!r}, {tuple(self.tensors)}, ({first}, {others[0]}))")
        if row.check:
            requested = f"x.{row.name}_" if kind.startswith("inplace") else row.name
            wanted = inspect.signature(_check_of(row)).parameters
            given = [f"{p}={first if p == self.tensors[0] else p}" for p in list(wanted)[1:]]
            lines.append(f"_check({', '.join([repr(requested), *given])})")
        if "size_average" in row.ignores:
            lines.append("reduction = _reduced_by(size_average, reduce, reduction)")
        if self.attributes:
            pairs = "".join(f'("{a}", {self._value(a)}), ' for a in self.attributes)
            pairs += "".join(f"{pair!r}, " for pair in row.fixed.items())
            as_ever = " and ".join(
                f"{p.name} is _default_{p.name}" for p in self.parameters if p.name in self.attributes
            )
            chosen = f"_op_of(_fn, ({pairs}))"
            lines.append(f"op = _op if {as_ever} else {chosen}" if self._defaults() is not None else f"op = {chosen}")
        else:
            lines.append("op = _op")
        rest = "".join(f"{t}, " for t in others)
        inputs = f"({first}, {rest})"
        if self.takes_list:
            inputs = first if f"*{first}" in row.form else f"_listed({first}, '{row.name}(...)')"
        if kind.startswith("inplace"):
            return [*lines, f"return _write_into({first}, op, ({rest}))"]
        if self._takes_inplace(kind) or (kind == "function" and self._is_pair()):
            lines += ["if inplace:", f"    return _write_into({first}, op, ({rest}))"]
        lines.append(f"result = _run(op, {inputs})")
        if row.fails:
            strategy_name = f"{row.path.removesuffix('_ex')}({', '.join(self.tensors)})"
            requested = "if check_errors: " if any(p.name == "check_errors" for p in self.parameters) else ""
            lines.append(f"{requested}_fails({strategy_name!r}, result[-1])")
            if "info" not in row.result:
                lines.append("result = result[:-1]" if row.result else "result = result[0]")
        if row.result:
            lines.append("result = _Result(*result)")
        if row.oneflow_dtype:
            lines.append("result = _oneflow_dtype(result)")
        if self._takes_out(kind):
            result = "tuple(result)" if row.result else "result"
            exact = ", True" if row.exact_out else ""
            return [*lines, f"return result if out is None else _into_out(out, {result}{exact})"]
        return [*lines, "return result"]

    def _value(self, name: str) -> str:
        """Return the source of the value passed for an attribute."""
        if name == "dtype":
            return "_dtype(dtype)"
        if f"*{name}" in self.row.form:
            return f"_hashable(_spread({name}))"
        kind = self.types[name]
        return f"{'_number' if kind == 'float' else '_several' if 'tuple[' in kind else '_hashable'}({name})"

    def _defaults(self) -> tuple | None:
        """Return the attributes of a call without any, None if one is required."""
        found = [(p.name, p.default) for p in self.parameters if p.name in self.attributes]
        return None if any(value is _MISSING for _, value in found) else (*found, *self.row.fixed.items())

    def _space(self) -> dict[str, Any]:
        row, fn, defaults = self.row, self.fn, self._defaults()
        space = {
            "_fn": fn, "_op": None if defaults is None else op_of(fn, defaults), "_op_of": op_of, "_run": dispatch.run,
            "_hashable": hashable, "_number": _number, "_several": _hashable_value, "_dtype": dtypes.as_np_dtype,
            "_write_into": write_into, "_into_out": into_out, "_listed": list_tensors, "_spread": _unpack_sequence,
            "_reduced_by": resolve_reduction, "_NUMBERS": NUMBERS, "_raise_for_number": raise_for_number,
            "Tensor": Tensor, "Sequence": Sequence, "__name__": __name__, **self.defaults,
        }  # fmt: skip
        if row.check:
            space["_check"] = _check_of(row)
        if row.fails:
            space["_fails"] = getattr(results, row.fails)
        if row.result:
            space["_Result"] = _named_tuple(row)
        if row.oneflow_dtype:
            space["_oneflow_dtype"] = getattr(results, row.oneflow_dtype)
        return space


def _format_type(annotation: Any) -> str:
    """Return a type as source; empty if there is none."""
    if isinstance(annotation, str):
        return annotation
    return "" if annotation is _MISSING else inspect.formatannotation(annotation)


def _check_of(row: Row) -> Callable:
    return getattr(checks, row.check)


def _unpack_sequence(values: tuple) -> tuple:
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else values


def _hashable_value(value):
    return tuple(value.tolist()) if isinstance(value, Tensor) and value.ndim else hashable(value)


def _number(value):
    return float(value) if value.__class__ is int else hashable(value)


# ------------------------------------------------------------------------------------------------------ the short ways


def _add_fast_path(kind: str, form: Form, function: Any) -> Any:
    """Return a function whose calls with its tensors alone, in order, go to dispatch at once."""
    names = [p.name for p in form.parameters]
    if names not in (["input"], ["input", "other"]) or kind.startswith("inplace"):
        return function
    takes_numbers = not form.must_be_tensors() or form.row.numbers
    short = (_unary if len(names) == 1 else _binary if takes_numbers else _of_tensors)(op_of(form.fn), function)
    functools.update_wrapper(short, function)
    return short


def _unary(op, function):
    def public(input=_MISSING, *rest, **options):
        if input.__class__ is Tensor and not options and not rest:
            return dispatch.unary(op, input)
        return function(*(() if input is _MISSING else (input, *rest)), **options)

    return public


def _of_tensors(op, function):
    def public(input=_MISSING, other=_MISSING, *rest, **options):
        if input.__class__ is Tensor and other.__class__ is Tensor and not options and not rest:
            return dispatch.binary(op, input, other)
        return function(*[x for x in (input, other, *rest) if x is not _MISSING], **options)

    return public


def _binary(op, function):
    def public(input=_MISSING, other=_MISSING, *rest, **options):
        if input.__class__ is Tensor and other is not _MISSING and not options and not rest:
            return dispatch.binary(op, input, other)
        return function(*[x for x in (input, other, *rest) if x is not _MISSING], **options)

    return public
