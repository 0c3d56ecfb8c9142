"""Line charts of metrics as SVG: one panel, a line per run.

    panel("loss", [Line("run7", (10, 20, 30), (4.1, 3.2, 2.9))])

A line has at most `_MOST` points: of more, each interval of steps keeps its smallest and its largest value, so that
spikes stay visible. NaN and infinite values interrupt a line. The panel has no script: the value at a point is its
tooltip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

COLOURS = ("#4e79a7", "#e15759", "#59a14f", "#f28e2b", "#b07aa1", "#76b7b2", "#edc948", "#9c755f")
_MOST = 300
_MARKED = 40  # points of a panel that have a tooltip; a line with few points shows them as dots
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 440, 230, 62, 28, 10

Place = Callable[[float, float], tuple[float, float]]  # of a step and a value in a panel


class Line(NamedTuple):
    """The values of one run.

    Attributes:
        name: the run.
        steps: their steps, in order.
        values: a value per step.
    """

    name: str
    steps: Sequence[float]
    values: Sequence[float]


def number(value: float) -> str:
    """Return a number with the digits that are useful to a reader.

    Example:
        >>> number(12345.6), number(0.00012), number(3.14159), number(2.0)
        ('12,346', '0.00012', '3.142', '2')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers in an interval, 1, 2 or 5 times a power of ten apart.

    Example:
        >>> ticks(0.0, 10.0)
        [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def thin(line: Line) -> Line:
    """Return a line with at most `_MOST` points: the smallest and the largest value of each interval."""
    if len(line.steps) <= _MOST:
        return line
    kept: list[int] = []
    size = len(line.steps) / (_MOST // 2)
    for k in range(_MOST // 2):
        part = range(int(k * size), int((k + 1) * size))
        finite = [i for i in part if math.isfinite(line.values[i])] or [part[0]]
        kept += sorted({min(finite, key=line.values.__getitem__), max(finite, key=line.values.__getitem__)})
    return Line(line.name, [line.steps[i] for i in kept], [line.values[i] for i in kept])


def panel(title: str, lines: Sequence[Line]) -> str:
    """Return a chart as SVG; empty if no value is finite.

    Args:
        title: the metric.
        lines: the runs, whose colours go by their place.
    """
    finite = [value for line in lines for value in line.values if math.isfinite(value)]
    if not finite:
        return ""
    x_range = _widen(min(s for line in lines for s in line.steps), max(s for line in lines for s in line.steps))
    y_range = _widen(min(finite), max(finite))
    width, height = _WIDTH - _LEFT - 10, _HEIGHT - _BOTTOM - _TOP

    def place(step: float, value: float) -> tuple[float, float]:
        x = _LEFT + width * (step - x_range[0]) / (x_range[1] - x_range[0])
        return x, _TOP + height * (y_range[1] - value) / (y_range[1] - y_range[0])

    parts = [*_grid(x_range, y_range, place)]
    most = max(_MARKED // len(lines), 5)
    for k, line in enumerate(lines):
        parts += _draw_curve(thin(line), COLOURS[k % len(COLOURS)], most, place)
    picture = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    return f"<figure><figcaption>{escape(title)}</figcaption>{picture}</figure>"


def _widen(low: float, high: float) -> tuple[float, float]:
    """Return an interval that is not empty."""
    margin = (high - low) * 0.04 or abs(low) * 0.1 or 1.0
    return low - margin, high + margin


def _grid(x_range: tuple[float, float], y_range: tuple[float, float], place: Place) -> Iterable[str]:
    right, bottom = _WIDTH - 10, _HEIGHT - _BOTTOM
    for value in ticks(*y_range):
        _, y = place(x_range[0], value)
        yield f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(value)}</text>'
    for step in ticks(*x_range):
        x, _ = place(step, y_range[0])
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{number(step)}</text>'


def _draw_curve(line: Line, colour: str, most: int, place: Place) -> Iterable[str]:
    """Yield a polyline per uninterrupted part, and points with tooltips, at most `most`."""
    part: list[tuple[float, float]] = []
    for step, value in [*zip(line.steps, line.values, strict=True), (0.0, math.nan)]:
        if math.isfinite(value):
            part.append(place(step, value))
        elif part:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in part)
            yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            part = []
    shown = int(len(line.steps) <= most)  # points of a long line are only targets of the tooltip
    every = math.ceil(len(line.steps) / most)
    for step, value in [*zip(line.steps, line.values, strict=True)][::every]:
        if math.isfinite(value):
            x, y = place(step, value)
            dot = f'cx="{x:.1f}" cy="{y:.1f}" r="{3 if shown else 6}" fill="{colour}" opacity="{shown}"'
            title = f"{line.name}, step {number(step)}: {number(value)}"
            yield f"<circle {dot}><title>{escape(title)}</title></circle>"
