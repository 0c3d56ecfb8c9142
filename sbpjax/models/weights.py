"""Tables of names: which tensor of Hugging Face's files each parameter is, and how it is turned or cut on the way.

    WEIGHTS = Weights(
        config=GPT2Config,
        architectures={"GPT2LMHeadModel": GPT2},
        names={
            "token": "transformer.wte",                 # of a module: its weight, and its bias if it has one
            "blocks.*.attention.q": Part("transformer.h.*.attn.c_attn", 0, 3, transposed=True),
        },
    )

A ``*`` is the number of a block, the same on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .config import Config


@dataclass(frozen=True)
class Part:
    """A part of a tensor of the files, or one that lies turned there.

    Attributes:
        name: the tensor or module, with ``*`` for the number of the block.
        index: which of the equal parts of its last dim.
        count: into how many parts its last dim is cut.
        transposed: whether a matrix is turned after it was cut.

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

    def shape(self, ours: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape that the tensor of the files has, of a parameter's shape."""
        theirs = ours[::-1] if self.transposed else ours
        return (*theirs[:-1], theirs[-1] * self.count)

    def read(self, array: Any) -> Any:
        """Return the parameter's array: a view of that of the files."""
        size = array.shape[-1] // self.count
        part = array[..., self.index * size : (self.index + 1) * size]
        return part.T if self.transposed else part


@dataclass(frozen=True, kw_only=True)
class Weights:
    """How a family's parameters are called in Hugging Face's files.

    Attributes:
        config: the class of the family's configuration.
        architectures: by the name in ``config.json``, the class of model; the first is that of a file without one.
        names: of each module or parameter, ``*`` for the number of its block, what it is in the files.
        skipped: patterns (`re.fullmatch`) of tensors in the files that the model does without.
        older: patterns and replacements (`re.sub`) from names in older files to those of `names`.
    """

    config: type[Config]
    architectures: Mapping[str, type]
    names: Mapping[str, str | Part]
    skipped: Collection[str] = ()
    older: Collection[tuple[str, str]] = ()

    def part(self, name: str) -> Part | None:
        """Return where a parameter is in the files; None if no row of the table says it."""
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

    def renamed(self, name: str) -> str:
        """Return the name of a tensor of the files as `names` has it."""
        for pattern, replacement in self.older:
            name = re.sub(pattern, replacement, name)
        return name

    def architecture(self, model: Any) -> str:
        """Return the name in ``config.json`` of a model's class."""
        fit = [name for name, made in self.architectures.items() if made is type(model)]
        return next((name for name in fit if name.lower().startswith(model.config.model_type)), fit[0])
