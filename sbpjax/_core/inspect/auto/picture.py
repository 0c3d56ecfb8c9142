"""Pictures of an auto parallel report: plans as bars, and the step as a graph coloured by layout.

Both are SVG without script or file from outside, so they show in a notebook, in a page, and on paper. In the graph a
box is a module with a chip per parameter, a line is an activation that goes from one module to the next; a line is
dashed where the value is converted on its way, and is labelled with the bytes that one device receives. Equal layers
are drawn once, with their number.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sbpjax._core.inspect.display import as_html, bytes_text, microseconds, svg, whole_page
from sbpjax._core.jax_private import Var
from sbpjax._core.planner.boundaries import forward_of, module_of
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax.graph.auto.planning_problem import PARAMETER
from sbpjax.graph.auto.rows import NUMBER, TensorRow
from sbpjax.sbp import algebra

from .cost_summary import Totals

if TYPE_CHECKING:
    from .report import Report

# One colour per nd-sbp, in the order in which a report names them; B is grey, since nothing is divided.
_COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#86bcb6",
)  # fmt: skip
_WHOLE, _PARTIAL = "#bab0ac", "#2f2f2f"
_STYLE = (
    "<style>.sbpjax{font-family:sans-serif;font-size:13px}.sbpjax table{border-collapse:collapse;margin:.6em 0}"
    ".sbpjax td,.sbpjax th{padding:.1em .8em .1em 0;text-align:left}</style>"
)
_FONT = ' font-family="sans-serif" font-size="12"'


def page(report: Report, *, whole: bool = False) -> str:
    """Return a report as HTML: the bars, the graph, the tables.

    Args:
        report: the report.
        whole: a complete page, not a part of a notebook.
    """
    tables = "".join(map(as_html, report.tables()))
    head = "".join(f"<p>{html.escape(text)}</p>" for text in (report.head(), *report.notes()))
    body = f"{head}{bars(report.totals)}{graph(report)}{tables}"
    inner = f"{_STYLE}<div class='sbpjax'>{body}</div>"
    return whole_page(report.problem.title, inner) if whole else inner


# -- bars --------------------------------------------------------------------------------------------------------------


def bars(totals: Sequence[Totals]) -> str:
    """Return the bar chart of plans as SVG: time (computing and moving), bytes, memory; each scaled to its largest."""
    panels = (
        ("modelled time per step", [(t.compute_us, t.interconnect_us) for t in totals], lambda v: microseconds(sum(v))),
        ("received over the interconnect", [(0.0, float(t.bytes)) for t in totals], lambda v: bytes_text(sum(v))),
        ("memory per device", [(float(t.memory_bytes), 0.0) for t in totals], lambda v: bytes_text(sum(v))),
    )
    names = 10 + 7 * max((len(t.name) for t in totals), default=0)
    width, high = 150, 20
    parts = []
    for k, (title, values, text) in enumerate(panels):
        left = names + k * (width + 90)
        most = max((sum(v) for v in values), default=0) or 1.0
        parts.append(f'<text x="{left}" y="14" font-weight="bold">{title}</text>')
        for row, (computing, moving) in enumerate(values):
            y = 22 + row * high
            a, b = width * computing / most, width * moving / most
            parts.append(f'<rect x="{left}" y="{y}" width="{a:.1f}" height="{high - 5}" fill="#4e79a7"/>')
            parts.append(f'<rect x="{left + a:.1f}" y="{y}" width="{b:.1f}" height="{high - 5}" fill="#f28e2b"/>')
            parts.append(f'<text x="{left + a + b + 4:.1f}" y="{y + 12}">{text((computing, moving))}</text>')
    for row, t in enumerate(totals):
        weight = ' font-weight="bold"' if row == 0 else ""
        parts.append(f'<text x="4" y="{34 + row * high}"{weight}>{html.escape(t.name)}</text>')
    bottom = 30 + len(totals) * high
    for k, (colour, label) in enumerate((("#4e79a7", "computing, held"), ("#f28e2b", "moving"))):
        x = names + k * 130
        parts.append(f'<rect x="{x}" y="{bottom}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="{bottom + 10}">{label}</text>')
    return svg(names + len(panels) * (width + 90), bottom + 20, parts, _FONT)


# -- graph -------------------------------------------------------------------------------------------------------------


@dataclass
class Box:
    """One module of the picture.

    Attributes:
        name: its name, ``*`` for equal layers.
        count: the number of layers that it represents.
        chips: its parameters.
        order: when it first computes.
    """

    name: str
    count: int = 1
    chips: list[TensorRow] = field(default_factory=list)
    order: int = 0


@dataclass(frozen=True)
class Line:
    """An activation that goes from one box to another.

    Attributes:
        source: the box that makes it.
        target: the box that reads it.
        before: its layout where it is made.
        after: its layout where it is read.
        bytes: the bytes that one device receives for it.
    """

    source: str
    target: str
    before: Codes
    after: Codes
    bytes: int


def boxes_and_lines(report: Report) -> tuple[list[Box], list[Line]]:
    """Return the boxes and lines of the graph, modules in the order in which they compute."""
    boxes: dict[str, Box] = {}
    lines: dict[tuple, Line] = {}
    stars = _Stars(report)
    _trace(report.plan, "", stars, boxes, lines)
    for row in report.rows:
        if row.kind == PARAMETER:
            name = stars(_owner(row.names[0]))
            for path in map(_owner, row.names):
                stars(path)
            boxes.setdefault(name, Box(name, order=len(boxes))).chips.append(row)
    ends = {name for line in lines.values() for name in (line.source, line.target)}
    shown = [box for box in boxes.values() if box.chips or box.name in ends]
    for box in shown:
        box.count = max(len(stars.members.get(box.name, ())), 1)
    return sorted(shown, key=lambda b: b.order), list(lines.values())


class _Stars:
    """The names of modules, with stars where the parameters of equal layers have equal layouts.

    Attributes:
        members: name with stars → the modules that it matches.
    """

    def __init__(self, report: Report) -> None:
        self.members: dict[str, set[str]] = {}
        rows = [r for r in report.rows if r.kind == PARAMETER]
        every = {n: r.name for r in rows for n in r.names}
        layers = {head for n in every for head in _heads(NUMBER.sub("*", n))}
        labels_text = [(NUMBER.sub("*", n), shown) for n, shown in every.items()]
        self._equal = {
            head for head in layers if all(shown.startswith(head) for n, shown in labels_text if n.startswith(head))
        }

    def __call__(self, path: str) -> str:
        """Return the name of a module in the picture."""
        starred = NUMBER.sub("*", path)
        heads = _heads(f"{starred}.")
        name = starred if heads and heads[-1] in self._equal else path
        self.members.setdefault(name, set()).add(path)
        return name


def _heads(starred: str) -> list[str]:
    """Return the beginnings of a name that end with a star."""
    parts = starred.split(".")
    return [".".join(parts[: k + 1]) + "." for k, part in enumerate(parts[:-1]) if part == "*"]


def _owner(name: str) -> str:
    return name.rpartition(".")[0] or name


def _trace(plan: Plan, around: str, stars: _Stars, boxes: dict[str, Box], lines: dict) -> None:
    program: Program = plan.program
    moved = {(b.value, b.target): b.bytes for b in plan.boxings}
    made: dict[Var, tuple[str, Codes]] = {}
    for i in forward_of(program):
        eqn = program.eqns[i]
        path = module_of(eqn)
        path = f"{around}.{path}" if around and path and not path.startswith(around) else path or around
        if i in plan.bodies:
            _trace(plan.bodies[i], path, stars, boxes, lines)
        name = stars(path) if path else ""
        for v, codes in zip(eqn.invars, plan.ins(i) if eqn.invars else (), strict=True):
            if isinstance(v, Var) and v in made and v.aval.shape:  # pyright: ignore[reportAttributeAccessIssue]
                source, before = made[v]
                if source != name and source and name:
                    key = (source, name, before, codes)
                    known = lines.get(key)
                    lines[key] = Line(*key, max(moved.get((v, codes), 0), known.bytes if known else 0))
        for v, codes in zip(eqn.outvars, plan.outs(i) if eqn.outvars else (), strict=True):
            made[v] = name, codes
        if name:
            boxes.setdefault(name, Box(name, order=len(boxes)))


def graph(report: Report) -> str:
    """Return the step as SVG: modules from top to bottom, chips and lines in the colours of their layouts."""
    boxes, lines = boxes_and_lines(report)
    if not boxes:
        return ""
    colours = _colours(
        [*(r.codes for b in boxes for r in b.chips), *(x.before for x in lines), *(x.after for x in lines)]
    )
    left, width, y = 20, 460, 24
    place: dict[str, tuple[int, int]] = {}
    parts: list[str] = []
    for box in boxes:
        high = 24 + 20 * len(box.chips)
        place[box.name] = (y, y + high)
        count = f" × {box.count}" if box.count > 1 else ""
        parts.append(
            f'<rect x="{left}" y="{y}" width="{width}" height="{high}" rx="4" fill="#f7f7f7" stroke="#888"/>'
            f'<text x="{left + 8}" y="{y + 16}" font-weight="bold">{html.escape(box.name + count)}</text>'
        )
        for k, row in enumerate(box.chips):
            top = y + 22 + 20 * k
            labels_text = f"{row.name.rpartition('.')[2]} {list(row.shape)}"
            parts.append(_chip(left + 8, top, row.codes, colours))
            parts.append(f'<text x="{left + 84}" y="{top + 12}">{html.escape(labels_text)}</text>')
        y += high + 26
    for k, line in enumerate(sorted(lines, key=lambda x: abs(place[x.target][0] - place[x.source][1]))):
        parts.append(_curve(line, place, left + width, k, colours))
    legend = "".join(
        _chip(left + 80 * (k % 6), y + 22 * (k // 6), codes, colours) for k, codes in enumerate(sorted(colours))
    )
    right = left + width + 60 + 14 * len(lines) + 190
    return svg(right, y + 22 * (len(colours) // 6 + 1), [*parts, legend], _FONT)


def _curve(line: Line, place: dict, x: int, number: int, colours: dict) -> str:
    """Return one line at the right of the boxes; lines nearer to them join modules that are near."""
    start, end = place[line.source][1] - 6, place[line.target][0] + 8
    out = x + 16 + 14 * number
    dashed = ' stroke-dasharray="5 3"' if line.before != line.after else ""
    labels_text = algebra.nd_name(line.before)
    if line.before != line.after:
        labels_text += f" → {algebra.nd_name(line.after)}" + (f", {bytes_text(line.bytes)}" if line.bytes else "")
    colour = colours[line.before]
    return (
        f'<path d="M {x} {start} H {out} V {end} H {x}" fill="none" stroke="{colour}" stroke-width="2"{dashed}>'
        f"<title>{html.escape(f'{line.source} → {line.target}: {labels_text}')}</title></path>"
        f'<path d="M {x} {end} l 7 -4 v 8 z" fill="{colour}"/>'
        f'<text x="{out + 4}" y="{(start + end) // 2 + 4}" fill="{colour}">{html.escape(labels_text)}</text>'
    )


def _chip(x: int, y: int, codes: Codes, colours: dict) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="70" height="16" rx="3" fill="{colours[codes]}"/>'
        f'<text x="{x + 35}" y="{y + 12}" text-anchor="middle" fill="white">{algebra.nd_name(codes)}</text>'
    )


def _colours(seen: Sequence[Codes]) -> dict[Codes, str]:
    """Return a colour per nd-sbp, the same in every run."""
    found: dict[Codes, str] = {}
    for codes in sorted(set(seen)):
        if all(c == algebra.B for c in codes):
            found[codes] = _WHOLE
        elif algebra.P in codes:
            found[codes] = _PARTIAL
        else:
            found[codes] = _COLOURS[sum(map(ord, algebra.nd_name(codes))) % len(_COLOURS)]
    return found
