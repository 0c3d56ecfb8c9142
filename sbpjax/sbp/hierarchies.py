"""Search over placement grids: shapes that a number of devices can form, and the fastest for a program.

    placement.auto(8).candidates()     [8], [2, 4], [4, 2]

Eight devices in a line split a batch of 8 and the heads of a layer of 8; two by four split both at once, and on two
hosts the outer axis is the slow one. Which is best depends on the program, so `placement.auto` only names the devices,
and a graph with auto parallelism plans its step on each grid and keeps the fastest (`fastest`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sbpjax.errors import PlacementError, count_text

if TYPE_CHECKING:
    from .placement import placement as Placement

_BETTER = 0.99  # a grid of more axes must win by a percent: its plans are harder to find, and to read


@dataclass(frozen=True)
class Hierarchies:
    """Devices whose grid will be chosen; the result of `placement.auto`.

    Attributes:
        type: the device type; of a topology, that of its devices.
        count: the number of devices, the first ones of that type.
        topology: the absent machine, None for devices of this machine.
        axes: the most axes of a grid.
        grid: shape → the placement of these devices in a grid of that shape.
    """

    type: str
    count: int
    topology: str | None
    axes: int
    grid: Callable[[tuple[int, ...]], Placement] = field(compare=False)

    def candidates(self) -> list[Placement]:
        """Return a placement per grid: fewer axes first, then the outer axis small first."""
        return [self.grid(shape) for shape in shapes(self.count, self.axes)]

    def __repr__(self) -> str:
        where = f"topology={self.topology!r}" if self.topology is not None else f"type={self.type!r}"
        return f"sbpjax.placement.auto({self.count}, {where}, axes={self.axes})"


def hierarchies(count: int | None, there: int, type: str, topology: str | None, axes: int, grid) -> Hierarchies:
    """Return the devices of `placement.auto`, checked; ``there`` is the number available.

    Raises:
        PlacementError: there are fewer devices, or a topology is not taken whole.
    """
    if topology is not None and count not in (None, there):
        fix = f"placement.auto(topology={topology!r})"
        raise _error(count, f"{topology} has {count_text(there, 'device')}", "a topology is taken whole", fix)
    where = f", topology={topology!r}" if topology is not None else f", {type!r}" if type != "cpu" else ""
    count = there if count is None else count
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= there:
        more = "; SBPJAX_CPU_DEVICES sets the number of virtual devices" if type == "cpu" else ""
        fix = f"placement.auto({there}{where}){more}"
        raise _error(count, count_text(there, f"{type} device"), f"a number of devices from 1 to {there}", fix)
    if isinstance(axes, bool) or not isinstance(axes, int) or axes < 1:
        raise _error(count, f"axes={axes!r}", "a grid has at least one axis", f"placement.auto({count}{where}, axes=1)")
    return Hierarchies(type, count, topology, axes, grid)


def _error(count: Any, seen: str, rule: str, fix: str) -> PlacementError:
    return PlacementError(f"placement.auto({count!r})", seen, rule, fix)


def shapes(count: int, axes: int) -> list[tuple[int, ...]]:
    """Return the grids of ``count`` devices with at most ``axes`` axes of two or more, fewer axes first."""
    found = [(count,)]
    for number in range(2, axes + 1):
        found += sorted(_products(count, number))
    return found


def _products(count: int, number: int) -> list[tuple[int, ...]]:
    if number == 1:
        return [(count,)] if count > 1 else []
    return [
        (outer, *inner)
        for outer in range(2, count // 2 + 1)
        if count % outer == 0
        for inner in _products(count // outer, number - 1)
    ]


def fastest(candidates: Sequence[Placement], plan: Callable[[Placement], tuple[Any, float]]) -> tuple[Any, Placement]:
    """Return the program planned on its fastest grid, and the grid.

    Args:
        candidates: the grids, simple ones first.
        plan: placement → a planned program and its modelled time.
    """
    best: tuple | None = None
    for place in candidates:
        made, us = plan(place)
        if best is None or us < best[1] * (_BETTER if len(place.hierarchy) > len(best[2].hierarchy) else 1.0):
            best = made, us, place
    if best is None:
        raise _error(0, "no grid", "there is at least one", "placement.auto()")
    return best[0], best[2]
