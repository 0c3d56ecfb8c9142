"""Docstring templates of derived functions: the pure op's docstring, completed from form, code and family.

The docstring of the pure op has only its own facts: the formula, its arguments and errors, an example. Worked case:
`arithmetic.mul` has "Return x * y; of bools, their conjunction" and an example. ``help(flow.mul)`` shows "Return
input * other", with the names of the form; that either may be a number, and the use of ``out`` and ``inplace``,
since all such arguments are alike; the broadcast of shapes and the result of a split and a partial sum, since it is
pointwise and linear in each; that the shapes have to fit, and all inputs be local or all global, since there are two.

`FAMILIES` has the layout of the result, `FAILURES` the errors that a helper in the op's code implies. Both are
tested on every op.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any

from .row import Row

_HEADING = re.compile(r"^(Args|Returns|Raises|Example|Source):$", re.MULTILINE)
_ORDER = ("Args", "Returns", "Raises", "Source", "Example")

# Default descriptions of arguments.
ARGUMENTS = {
    "out": "a tensor to write the result into, which is returned.",
    "inplace": "write the result into the first tensor.",
    "generator": "draws the numbers; the default one if not given.",
    "memory_format": "accepted; there is one format.",
    "dim": "the dim; a negative one counts from the back.",
    "keepdim": "keep the reduced dims with size 1.",
    "dtype": "cast to it first.",
    "reduction": '``"mean"`` or ``"sum"`` over all elements, or ``"none"``.',
    "data_format": '``"channels_first"`` or ``"channels_last"``: where the channels of the first tensor are.',
    "channel_pos": '``"channels_first"`` or ``"channels_last"``: where the channels of input and weight are.',
    "size_average": "the old form of `reduction`.",
    "reduce": "the old form of `reduction`.",
}

SEVERAL_DIMS = "a dim, several, or None for all."
IGNORED = "taken and ignored."
# Descriptions of the arguments of tensor creation.
MAKING = {
    "size": "the shape, as numbers or one tuple.",
    "dtype": "the dtype; the default dtype, or that of the values or the other tensor, if None.",
    "device": "the device of a local tensor.",
    "placement": "the placement of a global tensor; comes with ``sbp``.",
    "sbp": "the sbp of a global tensor.",
    "requires_grad": "whether ops on it are recorded.",
}

# ------------------------------------------------------------------------------------------------- facts of families

_POINTWISE = "elementwise arithmetic powers compare pairs special bessel polynomials complex activation".split()
WITH_NUMBERS = ("arithmetic.", "powers.", "compare.")  # ops whose further tensors may be numbers
_ONE = "The shape of {0}. A split stays"
_SEVERAL = "The shapes broadcast, the dtypes promote. A split stays where the others are split alike or broadcast"
REDUCED = "a partial sum is reduced first"
# In which tensors a pointwise op is linear: all together, the first, or each while the others are broadcast.
LINEAR = {
    **dict.fromkeys("add sub rsub neg positive conj complex deg2rad rad2deg".split(), "a partial sum stays one"),
    **dict.fromkeys("div polar ldexp".split(), "a partial sum in {0} stays one if {1} is broadcast"),
    "mul": "a partial sum times a broadcast tensor stays one",
    **dict.fromkeys("lerp addcmul addcdiv".split(), "partial sums stay where the op is linear in them"),
}
_OTHERS = "Splits of other dims stay"
SUM = f"A split of a reduced dim gives a partial sum, without communication. {_OTHERS}"
ALONG = f"{_OTHERS}. A split of the dim itself is moved or reduced, whichever is cheaper; {REDUCED}."
MOVED = f"{_OTHERS}; a split of the dim itself is moved first. A partial sum stays one."
PRODUCT = (
    "Splits of batch dims, of the rows of {0} and of the columns of {1} stay splits of the result. If the contracted "
    "dim is split in both, the result is a partial sum. A partial sum times a broadcast tensor stays one."
)
WHOLE = "The result is broadcast, since its size depends on values."
FAMILIES = (
    ("reductions.reduce", "sum mean", f"{SUM}; a partial sum stays one."),
    ("reductions.reduce", "nansum count_nonzero", f"{SUM}; {REDUCED}."),
    ("reductions.reduce", "amax amin aminmax all any prod argmax argmin nanmean logsumexp max min", ALONG),
    ("layers.activation", "softmax log_softmax softmin", ALONG),
    ("reductions.sort", "sort argsort topk kthvalue mode", ALONG),
    ("reductions.cumulative", "cumprod", ALONG),
    ("reductions.cumulative", "cumsum", MOVED),
    ("shapes.arrange", "cat flip", MOVED),
    ("linalg.products", "mm bmm matmul", PRODUCT),
    ("layers.activation", "glu prelu", ""),  # not pointwise, or only in part: documented by the op
    ("complex", "isreal", ""),
)
VIEW = (
    "A split stays with its dim, and with the first of dims that are joined. A part of a split dim is a partial sum, "
    "without communication. A partial sum stays one."
)
_VIEWS = (
    "sbpjax._core.tensor.storage.views.",
    "sbpjax._core.tensor.storage.reshaping.",
    "sbpjax._core.tensor.storage.splitting.",
)
_FAMILY_OF = {f"{module}.{name}": text for module, names, text in FAMILIES for name in names.split()}

# Helpers called by the code of an op → the error, or the dtype of the result, that they imply.
FAILURES = {
    "_check_float_dtype": ("OpTypeError", "{0} is not floating point."),
    "_not_bool": ("OpTypeError", "{0} is bool."),
    "same_dtype": ("OpTypeError", "the tensors have different dtypes."),
    "one": ("OpIndexError", "{0} has no such dim."),
    "several": ("OpIndexError", "{0} has no such dim."),
}
FLOATS = "Integers and bools become float32."


def op_docstring(
    home: str,
    fn: Callable,
    tensors: list[str],
    parameters: list[str],
    ignores: str = "",
    check: Any = None,
    own_text: str = "",
) -> str:
    """Return the docstring of a function that is derived from a pure op.

    Args:
        home: module and name of the op below `_core.ops`.
        fn: the op.
        tensors: the names of its tensors in the form, in the op's order.
        parameters: the names of all that the function takes.
        ignores: those without effect.
        check: the row's `check`.
        own_text: the row's `text`, of which only the arguments are the op's.
    """
    head, sections = _parts(inspect.getdoc(fn) or "")
    if own_text:
        arguments = sections.get("Args", "")
        head, sections = _parts(own_text)
        sections["Args"] = arguments
    own = own_tensors(fn)
    names = {a: b for a, b in zip(own, tensors) if a != b}
    head = _rename_tensors(head, names)
    sections = {title: text if title == "Example" else _rename_tensors(text, names) for title, text in sections.items()}
    if like := re.search(r"; (?:arguments|options) as in `(\w+)`", head):
        head = head.replace(like[0], "")
        other = _parts(inspect.getdoc(getattr(inspect.getmodule(fn), like[1])) or "")[1]
        other.pop("Example", None)
        sections = {**{title: _rename_tensors(text, names) for title, text in other.items()}, **sections}
    explained = {name: f"{_tensor(home, name, tensors)}." for name in tensors}
    explained |= {name: IGNORED for name in ignores.split() if name not in ("size_average", "reduce")}
    common = {**ARGUMENTS, "dim": SEVERAL_DIMS} if _uses(fn, "several") else ARGUMENTS
    sections["Args"] = _arguments(sections.get("Args", ""), parameters, {**common, **explained})
    sections.setdefault("Returns", _result(home, fn, tensors))
    sections["Raises"] = sections.get("Raises", "") + _errors(home, fn, tensors, check)
    return _join_sections(head, sections)


def _join_sections(head: str, sections: dict[str, str]) -> str:
    """Return a docstring from the part before its sections and the sections."""
    return "\n\n".join([head, *[f"{title}:\n{sections[title].rstrip()}" for title in _ORDER if sections.get(title)]])


def written_docstring(home: str, function: Callable, parameters: list[str]) -> str:
    """Return the docstring of a function that is written by hand, with the default descriptions of arguments added.

    ``parameters``: the names of all that it takes, as it is made public.
    """
    head, sections = _parts(inspect.getdoc(function) or "")
    own = inspect.signature(function).parameters
    tensors = {
        name: "a tensor." for name, p in own.items() if name == "input" or str(p.annotation).startswith("Tensor")
    }
    making = MAKING if "requires_grad" in own else {}
    sections["Args"] = _arguments(sections.get("Args", ""), parameters, {**ARGUMENTS, **tensors, **making})
    if home.startswith(_VIEWS):
        sections.setdefault("Returns", _fill_paragraph(VIEW))
    return _join_sections(head, sections)


def own_tensors(fn: Callable) -> list[str]:
    """Return the names of the tensors of a pure op."""
    parameters = inspect.signature(fn).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)]


def _parts(text: str) -> tuple[str, dict[str, str]]:
    """Return the part of a docstring before its sections, and the sections."""
    head, *rest = _HEADING.split(text)
    return head.strip(), {title: f"{body.strip(chr(10))}\n" for title, body in zip(rest[::2], rest[1::2])}


def _rename_tensors(text: str, names: dict[str, str]) -> str:
    """Return a text in which the tensors of the op have the names of the form."""
    for a, b in names.items():
        text = re.sub(rf"^    {a}:|``{a}``", lambda found, a=a, b=b: found[0].replace(a, b), text, flags=re.MULTILINE)
        if a == "a":  # it is an article, too
            text = re.sub(r"(?<![A-Za-z0-9_])a(?= [@*/])|(?<=\()a(?=,)", b, text)
        elif len(a) == 1:
            text = re.sub(rf"(?<![A-Za-z0-9_'.`]){a}(?![A-Za-z0-9_²])(?!\.\w)", b, text)
    return text


def _arguments(given: str, parameters: list[str], common: dict[str, str]) -> str:
    """Return a line for each argument: its own description, or the default one."""
    blocks = {block.partition(":")[0].strip(): block for block in re.split(r"^(?=    \w)", given, flags=re.MULTILINE)}
    alike = {name: f"    {name}: {text}\n" for name, text in common.items()}
    return "".join(blocks.get(name) or alike.get(name, "") for name in parameters if name != "self" or name in blocks)


def _tensor(home: str, name: str, tensors: list[str]) -> str:
    if name in ("tensors", "args"):
        return "a list of tensors"
    return "a tensor or a number" if home.startswith(WITH_NUMBERS) and len(tensors) > 1 else "a tensor"


def family(home: str, tensors: list[str]) -> str:
    """Return the shape and the sbp of the result of an op's family; empty if it has none."""
    module, name = home.split(".")[-2:]
    quoted = [f"`{t}`" for t in tensors]
    if home in _FAMILY_OF:
        return _FAMILY_OF[home].format(*quoted)
    if module not in _POINTWISE or not tensors:
        return ""
    return f"{_ONE if len(tensors) == 1 else _SEVERAL}; {LINEAR.get(name, REDUCED)}.".format(*quoted)


def _result(home: str, fn: Callable, tensors: list[str]) -> str:
    dtype = "Bools. " if home.startswith("compare.") else f"{FLOATS} " if makes_floats(fn) else ""
    return _fill_paragraph(f"{dtype}{family(home, tensors)}") if dtype or family(home, tensors) else ""


def makes_floats(fn: Callable) -> bool:
    """Return whether the code of an op turns integers into floats."""
    code = _code(fn)
    return _uses(fn, "floats") or (code is not None and ("float_result",) in code.co_consts)


def _errors(home: str, fn: Callable, tensors: list[str], check: Any) -> str:
    code, found = _code(fn), {}
    for name in code.co_names if code else ():
        if name in FAILURES:
            error, rule = FAILURES[name]
            found[error, rule.format(f"`{tensors[0]}`")] = None
    if check and (sections := re.match(r"Raise `(\w+)` (.*)", check.__doc__)):
        found[sections[1], sections[2]] = None
    if len(tensors) > 1 or tensors == ["tensors"]:
        if family(home, tensors).startswith(_SEVERAL):
            found["OpError", "the shapes do not broadcast."] = None
        found["MixedTensorError", "some are local, others global, or they are on different placements."] = None
    return "".join(_fill_paragraph(f"{error}: {rule}", 4) for error, rule in found)


def _uses(fn: Callable, helper: str) -> bool:
    """Return whether the code of an op names a helper."""
    code = _code(fn)
    return code is not None and helper in code.co_names


def _code(fn: Callable) -> CodeType | None:
    return getattr(inspect.unwrap(fn), "__code__", None)


def _fill_paragraph(text: str, hang: int = 0) -> str:
    """Return a paragraph in lines of a section."""
    return textwrap.fill(text, 112, initial_indent="    ", subsequent_indent=" " * (4 + hang)) + "\n"


class InheritedDocstring:
    """Docstring of a class whose base explains the arguments, joined on first access.

    Args:
        own: the class's own docstring.
        base: the base.
    """

    def __init__(self, own: str | None, base: type) -> None:
        self.own, self.base = own, base

    def __get__(self, instance: Any, owner: type) -> str:
        head, sections = _parts(inspect.cleandoc(self.own or ""))
        more, of_base = _parts(inspect.getdoc(self.base) or "")
        sections = {**of_base, **sections}
        parameters = list(inspect.signature(owner.__init__).parameters)[1:]
        sections["Args"] = _arguments(sections.get("Args", ""), parameters, ARGUMENTS)
        return _join_sections(f"{head}\n\n{more}", sections)


class FamilyDocstring:
    """Docstring of a class, completed on first access by the common arguments of its family.

    Args:
        own: the class's own docstring.
        common: argument → its description.
        returns: the result of a call of an instance; empty if the classes document it themselves.
    """

    def __init__(self, own: str | None, common: dict[str, str], returns: str = "") -> None:
        self.own, self.common, self.returns = own, common, returns

    def __get__(self, instance: Any, owner: type) -> str:
        text, _, source = inspect.cleandoc(self.own or "").partition("\n\nSource: ")
        head, sections = _parts(text)
        parameters = list(inspect.signature(owner.__init__).parameters)[1:]
        sections["Args"] = _arguments(sections.get("Args", ""), parameters, self.common)
        if self.returns:
            sections.setdefault("Returns", _fill_paragraph(self.returns))
        return _join_sections(head, sections) + (f"\n\nSource: {source}" if source else "")


class LayerDocstring:
    """Docstring of an activation layer, made on first access from the op's, whose tensor is the layer's input.

    Args:
        row: the row of the table.
        options: the names of the layer's options.
    """

    def __init__(self, row: Row, options: list[str]) -> None:
        self.row, self.options = row, options

    def __get__(self, instance: Any, owner: type) -> str:
        fn = self.row.resolve()
        text = op_docstring(self.row.home, fn, own_tensors(fn), self.options).removeprefix("Return ")
        called = rf"flow\.(?:nn\.functional\.)?{self.row.name}\(x(?:, )?(.*?)\)"
        text = re.sub(called, rf"flow.nn.{self.row.layer.partition('(')[0]}(\1)(x)", text)
        return text[:1].upper() + text[1:]
