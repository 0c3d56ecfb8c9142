"""`Row`: what the table of ops says of one op, and the flags of where it shows."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FN = 1  # a function of the room that the name says
METHOD = 2  # x.f(...)
INPLACE = 4  # x.f_(...)
INPLACE_FN = 8  # sbpjax.f_(x, ...)
NN = 16  # nn.functional.f(...)
NN_INPLACE = 32  # nn.functional.f_(...)

OUTPUT, NOTHING_SAVED = "outputs", "none"


@dataclass(slots=True, eq=False)
class Row:
    """What the table says of one op.

    Attributes:
        form: the call form; of a written function its name.
        home: the pure op below `_core.ops`, or the module and name of a written function.
        shows: where the op shows, flags of this module.
        also: further names of all that the row gives, by spaces; a dotted one is a function of that room.
        written: whether `home` is a function with logic of its own, made public as it is.
        call: of another form of calls that exist, the expression that it stands for.
        text: the docstring, where the op's serves several rows.
        fixed: attributes of the op that the form does not name.
        fails: a function of `_core.functions.table.failures`, which raises where the op's last result says that it
            failed; with `check_errors` in the form only if that is true. Without ``info`` in `result` that is left out.
        names: other names of arguments, as `_core.tensor.calls.argument_names.take_names` has them.
        oneflow: the form in OneFlow, where it is another one; see `_core.tensor.calls.oneflow_arguments`.
        ignores: arguments of the form that mean nothing here; `size_average` and `reduce` change the reduction.
        check: a function of `_core.functions.table.checks` that looks at the arguments first.
        numbers: which of two tensors may be numbers: none by default, ``other`` the second, ``one`` either, ``all``.
        result: the fields of the named tuple that is returned.
        oneflow_dtype: a function of `_core.functions.table.oneflow_dtypes` for the result, under OneFlow's name.
        out: which of `FN` and `NN` take ``out=``; True is `FN`, and PyTorch has few of the other kind.
        exact_out: whether ``out=`` has the dtype of the result, instead of one that it can be cast to.
        inplace: which of `FN` and `NN` take ``inplace=``; functions of two tensors do, by name.
        strict: whether types of arguments are looked at before each call: it would turn 2.5 into 2 itself.
        channels: the argument that says where the channels are, as OneFlow has it, then ``weight`` if the second
            argument has them too, ``first`` if they may not be last; see `_core.functions.table.channels`.
        several: a parameter that the method takes as several arguments too, ``x.sum(0, 1)``.
        layer: the activation layer, a class of `sbpjax.nn`; with its form, where that is not the function's.
        made: what was derived already, by kind.
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
        """The arguments of the form as source, with the types that it says."""
        return self.form.partition("(")[2].rpartition(")")[0]

    @property
    def returns(self) -> str:
        """The type of the result as source."""
        said = self.form.rpartition(")")[2].removeprefix(" -> ") if "(" in self.form else ""
        return said or ("tuple" if self.result else "Tensor")

    @property
    def room(self) -> str:
        """Where in the package the function is: ``""``, ``"nn.functional"``, ``"special"`` and so on."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The name without its room."""
        return self.path.rpartition(".")[2]

    def resolve(self) -> Callable:
        """Import what the row names, and return it."""
        module, _, name = self.home.rpartition(".")
        return getattr(importlib.import_module(module if self.written else f"sbpjax._core.ops.{module}"), name)
