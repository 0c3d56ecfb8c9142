"""Call forms of public functions as text: what a stub says behind ``def name``."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable

import sbpjax
from tests.support.stubs.render import PUBLIC, Types, Unresolved, default
from tests.support.stubs.vocabulary import ARGUMENTS, FORMS, RESULTS, SWITCHED

_EMPTY = inspect.Parameter.empty
_BARE = ("tuple", "list", "dict", "Callable", "Iterable", "Sequence")  # says nothing of what it holds


@functools.cache
def resolve(path: str) -> object:
    """Return the object of a dotted path below sbpjax; None if there is none."""
    found: object = sbpjax
    for i, name in enumerate(path.split(".")):
        try:
            found = getattr(found, name)
        except AttributeError:
            try:
                found = importlib.import_module("sbpjax." + ".".join(path.split(".")[: i + 1]))
            except ImportError:
                return None
    return found


def forms(path: str, types: Types) -> list[str]:
    """Return the forms in which a function is called, ``(self, dim: builtins.int) -> _Tensor``; mostly one."""
    name = path.rpartition(".")[2]
    given = FORMS.get(path) or FORMS.get(name)
    if given:
        return [_rendered(form, path, types) for form in given]
    function, inplace = _spoken(path)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ["(self, *args: object, **options: object) -> object"]
    parameters = [*signature.parameters.values(), *_added(function, signature)]
    if inplace:
        parameters = [p for p in parameters if p.name not in ("out", "inplace")]
    texts = []
    for i, p in enumerate(parameters):
        texts += _parameter(p, i, path, function, types, parameters)
    several = resolve(path)
    if _hands_on(several) and "dims" in inspect.signature(several).parameters:  # x.sum(0, 1)
        types.modules.add("typing")
        dims = [text for text in texts if not text.startswith("dim:")]
        marked = [*dims[:1], "*dim: builtins.int", *[text for text in dims[1:] if text != "*"]]
        result = _result(path, function, signature, types)
        return [f"({', '.join(texts)}) -> {result}", f"({', '.join(marked)}) -> {result}"]
    for switch, names in SWITCHED.items():
        if name in names:
            return _switched(switch, texts, types)
    return [f"({', '.join(texts)}) -> {_result(path, function, signature, types)}"]


def _switched(switch: str, texts: list[str], types: Types) -> list[str]:
    """Return the forms of a function that returns a tensor, or a pair of them if an argument says so."""
    types.modules.add("typing")
    at = next(i for i, text in enumerate(texts) if text.startswith(f"{switch}:"))
    star = [] if "*" in texts[:at] else ["*"]
    rest = [text for text in texts[at + 1 :] if text != "*"]
    one, pair = (types.render(result, PUBLIC) for result in ("Tensor", "tuple[Tensor, Tensor]"))
    off = [*texts[:at], f"{switch}: typing.Literal[False] = False", *texts[at + 1 :]]
    on = [*texts[:at], *star, f"{switch}: typing.Literal[True]", *rest]
    return [
        f"({', '.join(off)}) -> {one}",
        f"({', '.join(on)}) -> {pair}",
        f"({', '.join(texts)}) -> {one} | {pair}",
    ]


def doc(path: str) -> str:
    """Return the docstring that belongs to a path."""
    return inspect.getdoc(_spoken(path)[0]) or ""


def annotation_in_source(path: str, in_full: bool) -> str | None:
    """Return the module where a function is written, with all its types if `in_full`; None if there is none."""
    name, found = path.rpartition(".")[2], resolve(path)
    plain = inspect.unwrap(found)
    module = getattr(plain, "__module__", "")
    if FORMS.get(name) or any(name in names for names in SWITCHED.values()) or _spoken(path)[0] is not found:
        return None
    if plain.__name__ != found.__name__ or plain.__name__ not in _defined_in(module):
        return None
    signature = inspect.signature(plain)
    if not in_full:
        return module
    hints = [signature.return_annotation, *[p.annotation for p in signature.parameters.values()]]
    if _added(found, signature) or any(one is _EMPTY or _is_vague(one) for one in hints):
        return None
    return module


@functools.cache
def _defined_in(module: str) -> set[str]:
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@functools.cache
def _spoken(path: str) -> tuple[Callable, bool]:
    """Return the function whose signature says how a path is called, and whether the path writes in place.

    ``Tensor.sin_`` hands on ``*args``, and what those are stands at ``sbpjax.sin``.
    """
    owner, _, name = path.rpartition(".")
    inplace = False
    for candidate in _candidates(owner, name):
        found = resolve(candidate)
        if found is None:
            continue
        inplace = name.endswith("_") and not name.endswith("__") and not candidate.endswith("_")
        if not _hands_on(found):
            return found, inplace
    return resolve(path), False


def _candidates(owner: str, name: str) -> list[str]:
    bases = [name, name.removesuffix("_copy"), name.removesuffix("_with_indices"), f"{name}_"]
    if name.endswith("_") and not name.endswith("__"):
        bases.append(name.rstrip("_"))
    namespaces = [f"{owner}." if owner else "", "", "Tensor.", "nn.functional."]
    return [f"{namespace}{base}" for base in dict.fromkeys(bases) for namespace in dict.fromkeys(namespaces)]


def _hands_on(function: object) -> bool:
    try:
        kinds = {p.kind for p in inspect.signature(function).parameters.values()}
    except (TypeError, ValueError):
        return True
    return inspect.Parameter.VAR_KEYWORD in kinds


def _added(function: Callable, signature: inspect.Signature) -> list[inspect.Parameter]:
    """Return the arguments that wrappers of a function take besides its own: ``out=``."""
    added = []
    while hasattr(function, "__wrapped__"):
        code = function.__code__
        names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        for name in names:
            if name not in signature.parameters:
                kind = inspect.Parameter.KEYWORD_ONLY
                added.append(inspect.Parameter(name, kind, default=(function.__kwdefaults__ or {}).get(name, _EMPTY)))
        function = function.__wrapped__
    return added


def _space(function: object) -> dict:
    plain = inspect.unwrap(function) if callable(function) else function
    return getattr(plain, "__globals__", {})


def _parameter(p: inspect.Parameter, i: int, path: str, function: Callable, types: Types, all_: list) -> list[str]:
    """Return a parameter as a stub writes it, with the marks around it: ``*`` before the first that goes by name."""
    marks = []
    before = all_[i - 1] if i else None
    if before is not None and before.kind is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
        marks.append("/")
    if p.kind is p.KEYWORD_ONLY and not any(q.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY) for q in all_[:i]):
        marks.append("*")
    if i == 0 and _is_method(path):
        return ["self", *(["/"] if p.kind is p.POSITIONAL_ONLY and len(all_) == 1 else [])]
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    name = "input" if p.name == "self" else p.name
    text = f"{stars}{name}: {_type(p, path, function, types)}"
    if p.default is not _EMPTY:
        text += f" = {default(p.default)}"
    if p.kind is p.POSITIONAL_ONLY and p is all_[-1]:
        return [*marks, text, "/"]
    return [*marks, text]


def _is_method(path: str) -> bool:
    owner = resolve(path.rpartition(".")[0]) if "." in path else None
    return isinstance(owner, type) and not isinstance(
        inspect.getattr_static(owner, path.rpartition(".")[2]), staticmethod
    )


def _type(p: inspect.Parameter, path: str, function: Callable, types: Types) -> str:
    hints = getattr(function, "__annotations__", {}).get(p.name, p.annotation)
    for annotation in (hints, p.annotation):
        if annotation is _EMPTY or _is_vague(annotation):
            continue
        try:
            return _with_none(types.render(annotation, _space(function)), p.default)
        except Unresolved:
            continue
    several = p.kind is p.VAR_POSITIONAL and ARGUMENTS.get(f"*{p.name}")
    by_name = several or ARGUMENTS.get(f"{path.rpartition('.')[2]}.{p.name}") or ARGUMENTS.get(p.name)
    if by_name is None and type(p.default) in (bool, int, float, str):
        by_name = type(p.default).__name__
    if by_name is None and hints is not _EMPTY:
        by_name = "Any"
    return _with_none(types.render(by_name or "Any", PUBLIC), p.default)


def _is_vague(annotation: object) -> bool:
    """Return whether an annotation leaves open what a container holds, or everything."""
    if not isinstance(annotation, str):
        return annotation in (tuple, list, dict, object)
    return "Any" in annotation or any(part.strip() in _BARE for part in annotation.split("|"))


def _with_none(text: str, value: object) -> str:
    return (
        f"{text} | None" if value is None and not re.search(r"\bNone\b|^typing.Any$|^builtins.object$", text) else text
    )


def _result(path: str, function: Callable, signature: inspect.Signature, types: Types) -> str:
    name = path.rpartition(".")[2]
    hints = signature.return_annotation
    by_name = RESULTS.get(path) or RESULTS.get(name) or RESULTS.get(name.removesuffix("_copy"))
    if hints is not _EMPTY and not (by_name and _is_vague(hints)):
        try:
            return types.render(hints, _space(function))
        except Unresolved:
            pass
    return types.render(by_name or "Tensor", PUBLIC)


def _rendered(form: str, path: str, types: Types) -> str:
    """Return a form given by hand with its types as the stub writes them."""
    given, _, result = form.rpartition(" -> ")
    parts = []
    for part in re.split(r",\s*(?![^\[\(]*[\]\)])", given.strip()[1:-1]):
        name, colon, rest = part.partition(": ")
        if not colon:
            parts.append("self" if part == "input" and _is_method(path) else part)
            continue
        kind, equals, value = rest.partition(" = ")
        if name == "input" and _is_method(path):
            parts.append("self")
        else:
            parts.append(f"{name}: {types.render(kind, PUBLIC)}{equals}{value}")
    return f"({', '.join(parts)}) -> {types.render(result, PUBLIC)}"
