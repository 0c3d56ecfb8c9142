"""Fold table rows of equal layers into one row for all of them.

    blocks.1.mlp     f32[4,16] P → B   128     blocks.1-3.mlp     f32[4,16] P → B   384
    blocks.1.norm    f32[16] P → B      16     blocks.1-3.norm    f32[16] P → B      48
    blocks.2.mlp     f32[4,16] P → B   128
    ...

The names of layers differ in one number of a dotted name. All rows of a layer have to be the same, in the same order,
with nothing between the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class _NumberedName:
    """A name's parts around one of its numbers."""

    before: tuple[str, ...]
    number: int
    after: tuple[str, ...]

    def full_name(self, number: str) -> str:
        return ".".join((*self.before, number, *self.after))


def fold_layers(rows: Sequence[tuple[str, Row]]) -> list[tuple[str, Row, int]]:
    """Return rows with a name for all equal layers, and of how many layers each is.

    Args:
        rows: names, such as ``"blocks.1.mlp"``, and their contents, in the order of the table.
    """
    found = [(name, row, 1) for name, row in rows]
    depth = max((sum(map(str.isdigit, name.split("."))) for name, _ in rows), default=0)
    for level in range(depth):
        found = _folded_at(found, level)
    return found


def _folded_at(rows: list[tuple[str, Row, int]], level: int) -> list[tuple[str, Row, int]]:
    """Fold layers whose names differ in the number at a level, the outermost is 0."""
    marked = [(_parse_number(name, level), name, row, times) for name, row, times in rows]
    layers = [list(layer) for _, layer in groupby(marked, key=lambda m: m[0] and (m[0].before, m[0].number))]
    found: list[tuple[str, Row, int]] = []
    start = 0
    while start < len(layers):
        end = start + 1
        while end < len(layers) and _follows(layers[end - 1], layers[end]) and _keeps_direction(layers, start, end):
            end += 1
        numbers = sorted(layer[0][0].number for layer in layers[start:end] if layer[0][0])
        for mark, name, row, times in layers[start]:
            whole = mark.full_name(f"{numbers[0]}-{numbers[-1]}") if end - start > 1 else name
            found.append((whole, row, times * (end - start)))
        start = end
    return found


def _keeps_direction(layers: list, start: int, end: int) -> bool:
    """Return whether a layer goes on in the direction in which the run began: up, or down in a backward."""
    first, second, last, this = (layers[i][0][0].number for i in (start, start + 1, end - 1, end))
    return this - last == second - first


def _follows(before: list, this: list) -> bool:
    """Return whether two layers are neighbours with equal rows."""
    if before[0][0] is None or this[0][0] is None or abs(before[0][0].number - this[0][0].number) != 1:
        return False
    rows_before, rows_after = (
        [(m.before, m.after, row, times) for m, _, row, times in layer] for layer in (before, this)
    )
    return rows_before == rows_after


def _parse_number(name: str, level: int) -> _NumberedName | None:
    parts = name.split(".")
    at = [i for i, part in enumerate(parts) if part.isdigit()]
    if level >= len(at):
        return None
    i = at[level]
    return _NumberedName(tuple(parts[:i]), int(parts[i]), tuple(parts[i + 1 :]))
