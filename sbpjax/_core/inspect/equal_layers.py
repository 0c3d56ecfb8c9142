"""Fold table rows of equal layers into one row for all of them.

    blocks.1.mlp     f32[4,16] P → B   128     blocks.1–3.mlp     f32[4,16] P → B   384
    blocks.1.norm    f32[16] P → B      16     blocks.1–3.norm    f32[16] P → B      48
    blocks.2.mlp     f32[4,16] P → B   128
    ...

The names of equal rows differ in the numbers of dotted names. Layers need not be neighbours, so a layer that differs
leaves the others in one row: ``blocks.0–2,4–11.mlp``. Layers that a program runs as a loop have such a name too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

Row = TypeVar("Row")
_NUMBER = re.compile(r"(?<![^. ])\d+(?![^. ])")
_ANY = "\1"  # a number in a pattern; a name may have a star


def fold_layers(rows: Sequence[tuple[str, Row]]) -> list[tuple[str, Row, int]]:
    """Return rows with a name for all equal layers, and the number of rows that each stands for.

    Args:
        rows: names, such as ``"blocks.1.mlp"``, and their contents, in the order of the table.
    """
    groups: dict[tuple[str, Row], list[tuple[int, ...]]] = {}
    for name, row in rows:
        groups.setdefault((_NUMBER.sub(_ANY, name), row), []).append(tuple(map(int, _NUMBER.findall(name))))
    return [(name, row, count) for (pattern, row), all_ in groups.items() for name, count in _names(pattern, all_)]


def _names(pattern: str, layers: list[tuple[int, ...]]) -> Iterable[tuple[str, int]]:
    """Yield names that stand for all layers: one if their numbers are all combinations of some ranges."""
    columns = [sorted(set(column)) for column in zip(*layers, strict=True)]
    # Two names in one row, of a module and of its weight, have the same numbers: one range, written twice.
    free = math.prod(len(set(column)) for column in set(zip(*layers, strict=True)))
    if free == len(set(layers)):
        ranges = map(_range_text, columns)
        yield re.sub(_ANY, lambda _: next(ranges), pattern), len(layers)
        return
    first = next(k for k, column in enumerate(columns) if len(column) > 1)
    for number in columns[first]:
        yield from _names(pattern, [layer for layer in layers if layer[first] == number])


def _range_text(numbers: list[int]) -> str:
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda item: item[1] - item[0])]
    return ",".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


class LoopedLayers:
    """Names for layers that a program runs as a loop, whose ops have the name of one layer.

        model.blocks.0.up                   model.blocks.0–23.up
        gradient of model.blocks.*.up.bias  gradient of model.blocks.0–23.up.bias

    Args:
        stacks: name of a stack of the layers' tensors, ``model.blocks.*.up.weight`` → the names of its tensors.
    """

    def __init__(self, stacks: Mapping[str, Sequence[str]]) -> None:
        self._layers: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}
        for pattern, members in stacks.items():
            depth = 1 + max((k for k, part in enumerate(pattern.split(".")) if part == "*"), default=-1)
            layers = list(dict.fromkeys(_start(member, depth) for member in members))
            folded = fold_layers([(layer, "") for layer in layers])[0][0]
            self._layers.update(dict.fromkeys([_start(pattern, depth), folded, *layers], layers))
        self._layers.pop("", None)

    def paths(self, name: str) -> list[str]:
        """Return the names in all layers of a module or of a parameter's value; outside of loops, the name itself."""
        kind, of, path = name.rpartition(" of ")
        for depth in range(1 + path.count("."), 0, -1):
            start = _start(path, depth)
            if layers := self._layers.get(start):
                return [f"{kind}{of}{layer}{path[len(start) :]}" for layer in layers]
        return [name]

    def name(self, name: str) -> str:
        """Return one name for all layers of a loop."""
        if name not in self._names:
            self._names[name] = fold_layers([(path, "") for path in self.paths(name)])[0][0]
        return self._names[name]


def _start(path: str, depth: int) -> str:
    return ".".join(path.split(".")[:depth])
