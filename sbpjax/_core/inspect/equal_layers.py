"""Fold table rows of equal layers into one row for all of them.

    blocks.1.mlp     f32[4,16] P → B   128     blocks.1–3.mlp     f32[4,16] P → B   384
    blocks.1.norm    f32[16] P → B      16     blocks.1–3.norm    f32[16] P → B      48
    blocks.2.mlp     f32[4,16] P → B   128
    ...

The names of equal rows differ in the numbers of dotted names. Layers need not be neighbours, so a layer that differs
leaves the others in one row: ``blocks.0–2,4–11.mlp``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar

Row = TypeVar("Row")
_NUMBER = re.compile(r"(?<![^. ])\d+(?![^. ])")


def fold_layers(rows: Sequence[tuple[str, Row]]) -> list[tuple[str, Row, int]]:
    """Return rows with a name for all equal layers, and the number of rows that each stands for.

    Args:
        rows: names, such as ``"blocks.1.mlp"``, and their contents, in the order of the table.
    """
    groups: dict[tuple[str, Row], list[tuple[int, ...]]] = {}
    for name, row in rows:
        groups.setdefault((_NUMBER.sub("*", name), row), []).append(tuple(map(int, _NUMBER.findall(name))))
    return [(name, row, count) for (pattern, row), all_ in groups.items() for name, count in _names(pattern, all_)]


def _names(pattern: str, layers: list[tuple[int, ...]]) -> Iterable[tuple[str, int]]:
    """Yield names that stand for all layers: one if their numbers are all combinations of some ranges."""
    columns = [sorted(set(column)) for column in zip(*layers, strict=True)]
    # Two names in one row, of a module and of its weight, have the same numbers: one range, written twice.
    free = math.prod(len(set(column)) for column in set(zip(*layers, strict=True)))
    if free == len(set(layers)):
        ranges = map(_range_text, columns)
        yield re.sub(r"\*", lambda _: next(ranges), pattern), len(layers)
        return
    first = next(k for k, column in enumerate(columns) if len(column) > 1)
    for number in columns[first]:
        yield from _names(pattern, [layer for layer in layers if layer[first] == number])


def _range_text(numbers: list[int]) -> str:
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), lambda item: item[1] - item[0])]
    return ",".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
