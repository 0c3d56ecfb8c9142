"""`Row`: the record of one op in the table, and the flags of the namespaces that expose it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FN = 1  # a function of the package in the dotted name
METHOD = 2  # x.f(...)
INPLACE = 4  # x.f_(...)
INPLACE_FN = 8  # sbpjax.f_(x, ...)
NN = 16  # nn.functional.f(...)
NN_INPLACE = 32  # nn.functional.f_(...)

OUTPUT, NOTHING_SAVED = "outputs", "none"


@dataclass(slots=True, eq=False)
class Row:
    """The record of one op in the table.

    Attributes:
        form: the call form; of a written function its name.
        home: the pure op below `_core.ops`, or the module and name of a written function.
        shows: the namespaces of the op, flags of this module.
        also: further names for all functions of the row, by spaces; a dotted one is a function of that package.
        written: whether `home` is a function with logic of its own, made public as it is.
        call: of an alias, the expression that it evaluates.
        text: the docstring, where the op's serves several rows.
        fixed: attributes of the op that the form does not name.
        fails: a function of `_core.functions.table.results`, which raises where the op's last result reports a
            failure; with `check_errors` in the form only if that is true. Without ``info`` in `result` it is left out.
        names: other names of arguments, as `_core.tensor.calls.argument_names.renamed` takes them.
        oneflow: the form in OneFlow, where it differs; see `_core.tensor.calls.argument_names`.
        ignores: arguments of the form without effect here; `size_average` and `reduce` change the reduction.
        check: a function of `_core.functions.table.checks` that checks the arguments first.
        numbers: which of two tensors may be numbers: none by default, ``other`` the second, ``one`` either, ``all``.
        result: the fields of the named tuple that is returned.
        oneflow_dtype: a function of `_core.functions.table.results` for the result, under OneFlow's name.
        out: which of `FN` and `NN` take ``out=``; True is `FN`, and PyTorch has few of the other kind.
        exact_out: whether ``out=`` has the dtype of the result, instead of one that it can be cast to.
        inplace: which of `FN` and `NN` take ``inplace=``; functions of two tensors do, by name.
        strict: whether types of arguments are checked before each call: the function would turn 2.5 into 2 itself.
        channels: OneFlow's argument for the position of the channels, then ``weight`` if the second
            argument has them too, ``first`` if they may not be last; see `_core.functions.table.channels`.
        several: a parameter that the method takes as several arguments too, ``x.sum(0, 1)``.
        layer: the activation layer, a class of `sbpjax.nn`; with its form, where that is not the function's.
        made: the derived functions, by kind.
    """

    form: str
    home: str
    shows: int = FN
    also: str = ""
    written: bool = False
    call: str = ""
    text: str = ""
    fixed: dict[str, Any] = field(default_factory=dict)
    fails: str = ""
    names: dict[str, str] = field(default_factory=dict)
    oneflow: str = ""
    ignores: str = ""
    check: str = ""
    numbers: str = ""
    result: str = ""
    oneflow_dtype: str = ""
    out: int = FN
    exact_out: bool = False
    inplace: int = 0
    strict: bool = False
    channels: str = ""
    several: str = ""
    layer: str = ""
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The dotted name."""
        return self.form.partition("(")[0]

    @property
    def arguments(self) -> str:
        """The arguments of the form as source, with their types."""
        return self.form.partition("(")[2].rpartition(")")[0]

    @property
    def returns(self) -> str:
        """The type of the result as source."""
        annotation = self.form.rpartition(")")[2].removeprefix(" -> ") if "(" in self.form else ""
        return annotation or ("tuple" if self.result else "Tensor")

    @property
    def namespace(self) -> str:
        """The package of the function: ``""``, ``"nn.functional"``, ``"special"`` and so on."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The name without its package."""
        return self.path.rpartition(".")[2]

    def resolve(self) -> Callable:
        """Import the op or function that the row names, and return it."""
        module, _, name = self.home.rpartition(".")
        return getattr(importlib.import_module(module if self.written else f"sbpjax._core.ops.{module}"), name)
