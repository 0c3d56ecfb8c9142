"""`Communication.to_html`: a step as one page: purposes, a time line, and per layer its conversions and memory.

The time line has a bar per module, in the order in which the modules first compute, forward before backward: computing
in grey, each purpose in a colour. Times are modelled, one after the other; a real step overlaps some of them. The page
has no script, and no file from outside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from sbpjax._core.planner.prices.step_time import equations_us
from sbpjax.graph.auto.planning_problem import PARAMETER, STATE
from sbpjax.sbp.layout import local_shape

from .display import Table, bytes_text, microseconds, svg, whole_page
from .html import STYLE, Layers

if TYPE_CHECKING:
    from .communication import Communication

_COMPUTING = "#bab0ac"
_COLOURS = ("#e15759", "#4e79a7", "#f28e2b", "#59a14f", "#76b7b2", "#edc948", "#b07aa1", "#9c755f", "#ff9da7", "#333")
_COLUMNS = ("conversion", "purpose", "collective", "bytes", "times", "time", "line")


def page(report: Communication) -> str:
    """Return the page of a step."""
    moved, tables = _conversions(report)
    layers = Layers(report.graph, moved, tables, _memory_notes(report), report.layers).html()
    body = f"{report._repr_html_()}{_time_line(report)}<h3>Layers</h3>{layers}"
    return whole_page(f"{report.title}: communication", f"{STYLE}<div class='sbpjax'>{body}</div>")


def _conversions(report: Communication) -> tuple[dict[str, int], dict[str, list[Table]]]:
    """Return bytes and a table of conversions by module; a parameter's conversions are those of its module.

    Each layer of a loop has its part of the loop's conversions.
    """
    moved: dict[str, int] = {}
    rows: dict[str, list[tuple[str, ...]]] = {}
    for move in report.moves:
        if move.bytes:
            module = move.owner.rpartition(".")[0] if "." in move.value else move.module
            modules, labels = report.layers.paths(module), report.layers.paths(move.owner_label)
            count = len(modules)
            size, times, us = move.bytes // count, -(-move.times // count), move.us / count
            for module, label in zip(modules, labels, strict=True):
                moved[module] = moved.get(module, 0) + size
                where = f"{label}: {move.boxing}" if move.value else f"{'backward: ' * move.backward}{move.boxing}"
                cells = where, move.purpose, move.collective, bytes_text(size), str(times), microseconds(us)
                rows.setdefault(module, []).append((*cells, move.line))
    return moved, {module: [Table(found, _COLUMNS, right=(3, 4, 5))] for module, found in rows.items()}


def _memory_notes(report: Communication) -> dict[str, str]:
    """Return for every module the bytes of its parameters and their optimizer state on one device."""
    held: dict[str, int] = {}
    problem, plan = report.problem, report.plan
    for x, codes in zip(problem.inputs, plan.in_codes, strict=True):
        if x.kind in (PARAMETER, STATE):
            size = math.prod(local_shape(x.shape, codes, plan.sizes)) * x.dtype.itemsize // len(x.names)
            for name in x.names:
                parts = name.partition(":")[0].split(".")[:-1]
                for depth in range(len(parts)):
                    path = ".".join(parts[: depth + 1])
                    held[path] = held.get(path, 0) + size
    return {path: f"{bytes_text(size)} of weights and state per device" for path, size in held.items()}


def _time_line(report: Communication) -> str:
    """Return the time line as SVG, each bar with its figures as a tooltip."""
    bars: dict[tuple[str, bool], dict[str, float]] = {}
    for _, scope, us in equations_us(report.plan, report.prices):
        place = report.names.place(scope, with_op=False)
        times = bars.setdefault((report.layers.name(place.module), place.backward), {})
        times["computing"] = times.get("computing", 0.0) + us
    for move in report.moves:
        times = bars.setdefault((move.module, move.backward), {})
        times[move.purpose] = times.get(move.purpose, 0.0) + move.us
    colours = dict(zip((p.name for p in report.by_purpose()), _COLOURS, strict=False))
    scale, high = 1000 / (report.time_us or 1.0), 36
    parts, x = list(_legend(report, colours, high + 22)), 0.0
    for (module, is_backward), times in bars.items():
        for name, us in times.items():
            if us * scale >= 0.02:
                title = f"{module or 'outside modules'}{' backward' * is_backward}: {name} {microseconds(us)}"
                parts.append(
                    f'<rect x="{x:.2f}" y="4" width="{us * scale:.2f}" height="{high}" '
                    f'fill="{colours.get(name, _COMPUTING)}"><title>{escape(title)}</title></rect>'
                )
            x += us * scale
    return f"<h3>Time line of {microseconds(report.time_us)} (modelled)</h3>{svg(1000, high + 40, parts)}"


def _legend(report: Communication, colours: dict[str, str], y: int) -> Iterable[str]:
    x = 0
    for name, colour in {"computing": _COMPUTING, **colours}.items():
        yield f'<rect x="{x}" y="{y - 10}" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{x + 14}" y="{y}" font-size="12">{escape(name)}</text>'
        x += 30 + 7 * len(name)
