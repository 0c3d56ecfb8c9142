"""Weight name tables: maps tensors of Hugging Face's files to parameters, transposed or split where needed.

    WEIGHTS = Weights(
        config=GPT2Config,
        architectures={"GPT2LMHeadModel": GPT2},
        names={
            "token": "transformer.wte",                 # of a module: its weight, and its bias if it has one
            "blocks.*.attention.q": Part("transformer.h.*.attn.c_attn", 0, 3, transposed=True),
        },
    )

A ``*`` is the number of a block, the same on both sides. A ``#`` is the number of an expert: the tensors of all experts
are the rows of one parameter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import sbpjax as flow

from .config import Config


@dataclass(frozen=True)
class Part:
    """A slice of a tensor in the files, or a tensor that is transposed there.

    Attributes:
        name: the tensor or module, ``*`` for the number of the block; with ``#`` one for each row of the parameter.
        index: which of the equal parts of a dim.
        count: into how many parts the dim is cut.
        transposed: whether a matrix is turned after it was cut.
        dim: which dim is cut, of the tensor of the files; the last one by default.
        row: which row of the parameter it is; None if it is all of it.
        ones: how many dims of 1 stand behind those of a matrix: 2 where the files have a product as a convolution.

    Example:
        >>> import numpy as np
        >>> flow.models.Part("c_attn.weight", 1, 3, transposed=True).read(np.arange(12).reshape(2, 6))
        array([[2, 8],
               [3, 9]])
    """

    name: str
    index: int = 0
    count: int = 1
    transposed: bool = False
    dim: int = -1
    row: int | None = None
    ones: int = 0

    def rows(self, ours: tuple[int, ...]) -> list[Part]:
        """Return the tensors of the files that make up a parameter of this shape: itself, or one for each row."""
        if "#" not in self.name:
            return [self]
        return [replace(self, name=self.name.replace("#", str(i)), row=i) for i in range(ours[0])]

    def read_parameter(self, arrays: Mapping[str, Any], ours: tuple[int, ...]) -> Any:
        """Return the array of a parameter of this shape: a view of one tensor of the files, or a stack of several."""
        found = [part.read(arrays[part.name]) for part in self.rows(ours)]
        return np.stack(found) if "#" in self.name else found[0]

    def shape(self, ours: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape that the tensor of the files has, of a parameter's shape."""
        ours = ours if self.row is None else ours[1:]
        theirs = ours[::-1] if self.transposed else ours
        cut = self.dim % len(theirs)
        return tuple(size * (self.count if dim == cut else 1) for dim, size in enumerate(theirs)) + (1,) * self.ones

    def read(self, array: Any) -> Any:
        """Return the parameter's array: a view of that of the files."""
        array = array.reshape(array.shape[: array.ndim - self.ones]) if self.ones else array
        size = array.shape[self.dim] // self.count
        part = array[(slice(None),) * (self.dim % array.ndim) + (slice(self.index * size, (self.index + 1) * size),)]
        return part.T if self.transposed else part


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The names of a family's parameters in Hugging Face's files.

    Attributes:
        config: the class of the family's configuration.
        architectures: by the name in ``config.json``, the class of model; the first is that of a file without one.
        names: of each module or parameter, ``*`` for the number of its block, what it is in the files.
        skipped: patterns (`re.fullmatch`) of tensors in the files that the model does without.
        copies: tensors of the files that another one must equal, where the model has but the other.
        older: patterns and replacements (`re.sub`) from names in older files to those of `names`.
        fused: patterns (`re.fullmatch`) of tensors that some files have in the place of several, and the replacements
            with their names: rows are experts, ``#``, and the dim behind them is cut into as many equal parts.
    """

    config: type[Config]
    architectures: Mapping[str, type]
    names: Mapping[str, str | Part]
    skipped: Collection[str] = ()
    copies: Mapping[str, str] = field(default_factory=dict)
    older: Collection[tuple[str, str]] = ()
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def part(self, name: str) -> Part | None:
        """Return where a parameter is in the files; None if no row of the table names it."""
        number = re.search(r"\.(\d+)\.", name)
        row = name if number is None else name.replace(number[0], ".*.", 1)
        found, ending = self.names.get(row), ""
        if found is None:
            module, _, last = row.rpartition(".")
            found, ending = self.names.get(module), f".{last}"
        if found is None:
            return None
        part = Part(found) if isinstance(found, str) else found
        theirs = part.name if number is None else part.name.replace("*", number[1])
        return replace(part, name=theirs + ending)

    def is_skipped(self, name: str) -> bool:
        """Return whether the model does without a tensor of the files."""
        return any(re.fullmatch(pattern, name) for pattern in self.skipped)

    def rename(self, name: str) -> str:
        """Return the name of a tensor of the files as `names` has it."""
        for pattern, replacement in self.older:
            name = re.sub(pattern, replacement, name)
        return name

    def name_tensors(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tensors of files under the names that `names` has; what is fused as views of its parts."""
        found = {}
        for given, array in arrays.items():
            name = self.rename(given)
            parts = next(((k, v) for k, v in self.fused.items() if re.fullmatch(k, name)), None)
            if parts is None:
                found[name] = array
                continue
            size = array.shape[1] // len(parts[1])
            for n, theirs in enumerate(parts[1]):
                own = re.sub(parts[0], theirs, name)
                found |= {own.replace("#", str(i)): expert[n * size : (n + 1) * size] for i, expert in enumerate(array)}
        return found

    def architecture(self, model: Any) -> str:
        """Return the name in ``config.json`` of a model's class."""
        fit = [name for name, made in self.architectures.items() if made is type(model)]
        return next((name for name in fit if name.lower().startswith(model.config.model_type)), fit[0])


class FileTensors(Mapping):
    """The tensors of files that parameters make up, by the files' names: what `Part.read` takes apart, put together.

    Each is made when it is asked for, so that of a model on many devices one at a time is whole.

    Args:
        parameters: of each, where it is in the files, and itself, in any layout.

    Example:
        >>> from sbpjax.models.weights import FileTensors, Part
        >>> rows = [(Part("qk.weight", i, 2, dim=0), flow.tensor([[float(i)]])) for i in range(2)]
        >>> FileTensors(rows)["qk.weight"].tolist()
        [[0.0], [1.0]]
    """

    def __init__(self, parameters: Iterable[tuple[Part, flow.Tensor]]):
        self.parts: dict[str, list[tuple[Part, flow.Tensor]]] = {}
        for part, parameter in parameters:
            for row in part.rows(tuple(parameter.shape)):
                self.parts.setdefault(row.name, []).append((row, parameter))

    def select(self, names: Collection[str]) -> FileTensors:
        """Return the same with some of the tensors alone."""
        found = FileTensors(())
        found.parts = {name: self.parts[name] for name in names}
        return found

    def bytes(self, name: str) -> int:
        """Return the size of a tensor."""
        return sum(
            p.numel() * p.element_size() // (1 if part.row is None else p.shape[0]) for part, p in self.parts[name]
        )

    def __getitem__(self, name: str) -> flow.Tensor:
        found = sorted(self.parts[name], key=lambda row: row[0].index)
        own = [(part, p.detach() if part.row is None else p.detach()[part.row]) for part, p in found]
        theirs = [p.t() if part.transposed and p.ndim == 2 else p for part, p in own]
        first = found[0][0]
        joined = theirs[0] if len(theirs) == 1 else flow.cat(theirs, dim=first.dim)
        return joined.reshape(*joined.shape, *[1] * first.ones) if first.ones else joined

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)
