"""Notebook views of placements, sbps and tensors: a grid of ranks, an entry in words, a tensor with its blocks."""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax.sbp.algebra import B, P, name
from sbpjax.sbp.placement import placement

from .display import Table, as_html
from .layout_picture import visualize

_MOST = 256  # ranks that are shown one by one
_MOST_DRAWN = 32  # ranks whose parts are drawn below a tensor


def placement_html(place: placement) -> str:
    """Return a placement as HTML: its ranks in a table, the last axis along the columns."""
    if place.size > _MOST:
        return as_html(repr(place))
    *outer, columns = place.hierarchy
    *names, last = place.axis_names
    rows = place.ranks.reshape(-1, columns)
    places = [", ".join(f"{axis}={i}" for axis, i in zip(names, _index(at, outer))) for at in range(len(rows))]
    head = ("", *(f"{last}={i}" for i in range(columns)))
    cells = [(where, *map(str, row)) for where, row in zip(places, rows.tolist())]
    return as_html(repr(place)) + as_html(Table(cells, head, right=range(1, columns + 1)))


def _index(at: int, sizes: list[int]) -> list[int]:
    """Return the place on each axis of a number that counts row by row."""
    found: list[int] = []
    for size in reversed(sizes):
        at, here = divmod(at, size)
        found.insert(0, here)
    return found


def sbp_html(entry: Any) -> str:
    """Return one sbp entry as HTML, with the blocks of the ranks along its axis."""
    if entry.code == B:
        held = "each rank holds all of the tensor"
    elif entry.code == P:
        held = "each rank holds a summand; their sum is the tensor"
    elif entry.code >= 0:
        held = f"each rank holds a part of dim {entry.code}"
    else:
        return as_html(repr(entry))
    return as_html(f"{entry!r} ({name(entry.code)}): {held}")


def tensor_html(x: Tensor) -> str:
    """Return a tensor as HTML: its printed form, and below a global one the parts that its ranks hold."""
    text = as_html(repr(x)).replace("<p>", "<pre>").replace("</p>", "</pre>")
    if x.layout is None or x.placement.size > _MOST_DRAWN or not x.shape.numel():
        return text
    return text + visualize(x)._repr_html_()
