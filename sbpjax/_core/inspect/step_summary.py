"""Summary of a step's traffic by purpose, in 25 lines of 110 columns.

    Train_0 on 2 × 4 ranks (a0: 2 ranks, batch; a1: 4 ranks, weights)
    A rank receives 505.2 kB a step in 31 collectives: 65 % of the modelled 2.18 µs (h100 with 0.005
      µs latency, one after the other).

    purpose                  bytes  time  count  collectives                    weights or modules
    tensor parallelism    314.5 kB  37 %     21  reduce-scatter, all-gather a1  blocks.0–1.norm2, blocks.0–1.down, …
    gradients of weights  153.9 kB  24 %     30  all-reduce a0                  blocks.0–1.up.weight, …

       bytes  time  largest conversions  collectives  weights or modules
     49.2 kB   5 %  2 × f32[8, 32, 64]   all-gather a1  blocks.0–1.norm2  train.py:27

    • 9 weights are stored split over a1, but gathered for use (36.9 kB): …

A row names weights, or the modules that read a value. Times are modelled: collectives by the links' prices, computing
by a roofline, one after the other.
"""

from __future__ import annotations

import operator
import os
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sbpjax.graph.auto.planning_problem import PARAMETER

from . import moves
from .auto.usual_traffic import UsualTraffic
from .display import Table, bytes_text, microseconds
from .equal_layers import fold_layers

if TYPE_CHECKING:
    from .communication import Communication, Purpose
    from .traffic import Traffic

_WIDTH, LINES, _LARGEST = 110, 25, 10
PLACES = "weights or modules"
_SMALL = 0.005  # purposes with a smaller share of the bytes are one row
# Other grids are not recommended: whether one is faster takes a plan of the step on it.
GROWTH = {
    moves.GRADIENTS: "does not grow with the batch: more rows or micro-batches a step make it a smaller share",
    moves.WEIGHTS: "does not grow with the batch: more rows a step make it a smaller share",
    moves.UPDATES: "does not grow with the batch: more rows or micro-batches a step make it a smaller share",
    moves.TENSOR: "grows with the rows of a rank, until gathering the weights takes less time",
    moves.BATCH: "grows with the rows of a rank",
    moves.SEQUENCE: "grows with the rows of a rank and with their length",
    moves.EXPERTS: "grows with the rows of a rank, and with the experts per token",
}


def summary(report: Communication) -> Iterable[Any]:
    """Yield the parts of the summary: title, purposes, largest conversions, remarks."""
    head = [*wrapped_lines(_title(report)), *wrapped_lines(_total(report))]
    about = [line for remark in remarks(report) for line in wrapped_lines(f"• {remark}")]
    rows = list(_purpose_rows(report))
    left = LINES - len(head) - len(rows) - len(about) - 5  # three empty lines, two of column names
    yield "\n".join(head)
    if rows:
        yield fitted_table(rows, ("purpose", "bytes", "time", "count", "collectives", PLACES), right=(1, 2, 3))
        columns = ("bytes", "time", "largest conversions", "collectives", PLACES)
        yield fitted_table(_largest_rows(report, min(left, _LARGEST)), columns, right=(0, 1))
    if about:
        yield "\n".join(about)


def remarks(report: Communication) -> list[str]:
    """Return remarks: weights that are gathered for use, the bytes of the usual strategies, the largest purpose."""
    usual = UsualTraffic(report.problem)
    found = [text for axis in range(len(report.axes)) if (text := _stored_only(report, usual, axis))]
    found += [text for axis in range(len(report.axes)) if (text := _gathered_rows(report, axis))]
    purposes = report.by_purpose()
    if purposes and any(x.kind == PARAMETER for x in report.problem.inputs):
        data, tensor = usual.ranks
        grid = f"data {data} × tensor {tensor}" if data > 1 else f"tensor {tensor}"
        found.append(
            f"This plan receives {bytes_text(report.bytes)}; Megatron-LM ({grid}) about {bytes_text(usual.megatron)}; "
            f"FSDP ({data * tensor} ranks) {bytes_text(usual.fsdp)}.{_more_than_megatron(report, usual)}"
        )
    return [*found, *growth_remarks(purposes, "The largest share")]


def growth_remarks(purposes: Sequence[Purpose], share: str) -> list[str]:
    """Return the first purpose with the quantities that it grows with; nothing if these are not known."""
    growth = GROWTH.get(purposes[0].name) if purposes else None
    return [] if growth is None else [f"{share} is for {purposes[0].name}; it {growth}."]


def _more_than_megatron(report: Communication, usual: UsualTraffic) -> str:
    """Return why a plan receives more bytes than Megatron-LM's formula; empty if it does not."""
    if report.bytes <= 1.02 * usual.megatron:  # the formula is approximate
        return ""
    kept = [codes for x, codes in zip(report.problem.inputs, report.plan.in_codes, strict=True) if x.kind == PARAMETER]
    if all(codes[usual.axis] < 0 for codes in kept):
        return " Megatron-LM splits weights, which here are stored whole."
    text = " The plan minimises modelled time, computing included, and not bytes."
    if len(report.axes) > 1:  # the search finds local optima: forced, Megatron-LM's layout may turn out faster
        text += (
            " On several axes it may miss a faster one: force Megatron-LM's layout by h.to_global(sbp=…) to compare."
        )
    return text


def _stored_only(report: Communication, usual: UsualTraffic, axis: int) -> str:
    """Return a remark on the weights that are split over an axis that divides no rows, and read whole on it."""
    inputs = report.problem.inputs
    positions = {report.layers.name(x.name): i for i, x in enumerate(inputs) if x.kind == PARAMETER}
    gathers = [m for m in report.moves if m.purpose == moves.WEIGHTS and ("all_gather", axis) in m.steps and m.bytes]
    names = {m.value for m in gathers} & set(positions)
    if not names or "batch" in report.axes[axis].divides:
        return ""
    size = sum(m.bytes for m in gathers)
    kept = usual.activations([positions[name] for name in names]) if axis == usual.axis else 0
    largest = max(fold_layers([(report.shorten(name), "") for name in sorted(names)]), key=lambda row: row[2])[0]
    count = sum(len(inputs[positions[name]].names) for name in names)
    weights = f"{count} weights ({largest}, …) are" if len(names) > 1 else f"{largest} is"
    text = f"{weights} stored split over {report.axis_names[axis]}, but gathered for use: {bytes_text(size)}"
    scattered = {m.value for m in report.moves if ("reduce_scatter", axis) in m.steps and m.purpose == moves.GRADIENTS}
    if any(f"gradient of {name}" in scattered for name in names):
        size *= 2
        text += ", and about as much for their gradients"
    text += "."
    if kept >= 0.8 * size:
        text += f" Computing with the parts, as Megatron-LM does, would send {bytes_text(kept)} of activations."
    elif kept:
        text += f" Computing with the parts would send {bytes_text(kept)}: force it by h.to_global(sbp=…)."
    return text


def _gathered_rows(report: Communication, axis: int) -> str:
    """Return a remark on arguments that are split over an axis, and read whole on it."""
    size = sum(m.bytes for m in report.moves if m.purpose == moves.INPUTS and ("all_gather", axis) in m.steps)
    if not size or size < _SMALL * report.bytes:
        return ""
    text = f"Arguments are split over {report.axis_names[axis]}, but gathered for use: {bytes_text(size)}."
    return f"{text} With few rows that sends less than the gradients of weights; more rows a step stay split."


def _title(report: Communication) -> str:
    axes = "; ".join(f"a{k}: {axis}" for k, axis in enumerate(report.axes))
    return f"{report.title} on {' × '.join(map(str, report.plan.sizes))} ranks ({axes})"


def _total(report: Communication) -> str:
    count = sum(report.launches.values())
    moving = _share(report, report.time_us - report.computing_us)
    combined = " after combining" * (count < sum(purpose.times for purpose in report.by_purpose()))
    prices = f"{report.prices.title}, one after the other"
    if report.planned_us is not None:
        prices += f"; {microseconds(report.planned_us)} by the planner"
    compiled = report.traffic and f" Compiled: {_compiled_text(report.traffic)}."
    return (
        f"A rank receives {bytes_text(report.bytes)} a step in {count} collective{'s' * (count != 1)}{combined}: "
        f"{moving} of the modelled {microseconds(report.time_us)} ({prices}).{compiled or ''}"
    )


def _compiled_text(traffic: Traffic) -> str:
    difference = traffic.difference()
    return f"{100 * difference:+.1f} % bytes{f' ({traffic.note})' if difference and traffic.note else ''}"


def _share(report: Communication, us: float) -> str:
    return f"{100 * us / report.time_us:.0f} %" if report.time_us else "0 %"


def _purpose_rows(report: Communication) -> Iterable[tuple[Any, ...]]:
    """Yield a row for each purpose, and one for all that are small."""
    purposes = report.by_purpose()
    large = [p for p in purposes if p.bytes >= _SMALL * report.bytes]
    small = purposes[len(large) :]
    if len(small) == 1:
        large, small = purposes, []
    for p in large:
        places = list(map(report.shorten, p.places))
        yield p.name, bytes_text(p.bytes), _share(report, p.us), str(p.times), kinds_text(p), places
    if small:
        name, places = ", ".join(p.name for p in small), [report.shorten(place) for p in small for place in p.places]
        size, us, times = (sum(getattr(p, field) for p in small) for field in ("bytes", "us", "times"))
        yield name, bytes_text(size), _share(report, us), str(times), "", places


def kinds_text(purpose: Purpose) -> str:
    """Return the two largest kinds of collectives: ``"all-gather, reduce-scatter a1"``."""
    first, *more = [_collective(one) for one in list(purpose.collectives)[:2]]
    if not more:
        return first
    kind, axis = first.rsplit(" ", 1) if " " in first else (first, "")
    return f"{kind}, {more[0]}" if more[0].endswith(f" {axis}") else f"{first}, {more[0]}"


def _collective(text: str) -> str:
    return text.replace("_", "-").replace("(", " ").replace(")", "")


def _largest_rows(report: Communication, most: int) -> list[tuple[Any, ...]]:
    """Return rows of the largest conversions, equal layers in one row."""
    cells = operator.attrgetter("bytes", "tensor", "collective", "line", "us", "times")
    found = fold_layers([(report.shorten(move.owner_label), cells(move)) for move in report.moves if move.bytes])
    rows = []
    for name, row, layers in sorted(found, key=lambda found: -found[1][0] * found[2])[:most]:
        size, tensor, collective, line, us, times = row
        count = f"{times * layers} × " if times * layers > 1 else ""
        kinds = list(dict.fromkeys(_collective(one).partition(" ")[0] for one in collective.split(" + ")))
        kinds = " + ".join(kinds if len(kinds) < 3 else [kinds[0], "…"])
        where = f"{name}  {os.path.basename(line)}" if line and not name.startswith("gradient of ") else name
        rows.append((bytes_text(size * layers), _share(report, us * layers), count + tensor, kinds, [where]))
    return rows


def fitted_table(rows: Sequence[Sequence[Any]], head: Sequence[str], right: tuple[int, ...]) -> Table:
    """Return a table of `_WIDTH` columns; the last cell of a row is a list of names, of which those stay that fit."""
    used = sum(max(map(len, column)) + 2 for column in zip(head[:-1], *(row[:-1] for row in rows), strict=True))
    return Table([(*row[:-1], _names_text(row[-1], _WIDTH - used)) for row in rows], head, right)


def _names_text(names: Sequence[str], width: int) -> str:
    """Return as many names as fit; of a longer first one its last parts stay."""
    start, of, text = names[0].rpartition(" of ")
    most = width - 3 * (len(names) > 1) - len(start + of)
    while len(text) > most and "." in text:
        text = f"…{text.partition('.')[2]}"
    text = start + of + text
    for k, name in enumerate(names[1:], 2):
        longer = f"{text}, {name}"
        if len(longer) + 3 * (k < len(names)) > width:
            return f"{text}, …"
        text = longer
    return text


def wrapped_lines(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
