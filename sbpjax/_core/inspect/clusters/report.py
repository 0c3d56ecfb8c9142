"""Report of a search over layouts: the choice, where its time and memory go, and why the next best are slower.

llama-70b on v5p:8x16x16, 512 sequences of 8,192 tokens: 13,686 layouts priced
choice: fsdp 256 × context 8; micro-batch 2, recompute none: 2.78 s a step, MFU 72 %, 61.1 of 95.0 GB
…
against pipeline 4 × fsdp 512: 0.21 s slower
+0.30 s  bubble: the pipeline fills and drains
-0.09 s  tensor: gathers and reduce-scatters (-41.0 GB)
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from sbpjax._core.inspect.display import DisplayedReport, Table, bytes_text, svg
from sbpjax._core.planner.clusters.layout import RECOMPUTE
from sbpjax._core.planner.clusters.memory import peak
from sbpjax._core.planner.clusters.search import Found
from sbpjax._core.planner.clusters.step import Step

_MOST = 10
_REASONS = 4
_COLOURS = {
    "compute": "#1f78b4",
    "memory": "#a6cee3",
    "communication": "#e31a1c",
    "bubble": "#fdbf6f",
    "launch": "#cab2d6",
}


def seconds_text(seconds: float) -> str:
    """Return a time of at least a microsecond as people read it."""
    return f"{seconds:,.2f} s" if abs(seconds) >= 1 else f"{seconds * 1e3:,.3g} ms"


def explain_costs(step: Step) -> str:
    """Return the ten largest costs of a step, and its peak memory by part, as tables."""
    return f"{_costs(step)}\n\n{_memory(step)}"


def _costs(step: Step) -> Table:
    costs = step.costs()
    rows = [
        (
            c.name,
            c.kind,
            seconds_text(c.seconds),
            f"{c.seconds / step.seconds:.1%}",
            bytes_text(c.bytes) * bool(c.bytes),
        )
        for c in costs[:_MOST]
    ]
    return Table(rows, ("cost", "kind", "time", "share", "bytes"), right=(2, 3, 4))


def _memory(step: Step) -> Table:
    found = peak(step)
    rows = [(name, bytes_text(size)) for name, size in vars(found).items()]
    return Table([*rows, ("total", bytes_text(found.total))], ("memory of a chip", ""), right=(1,))


def differences(choice: Step, other: Step) -> list[tuple[float, float, str]]:
    """Return ``(seconds, bytes, cost)`` that another step needs more than the choice, largest first."""
    found: dict[str, list[float]] = {}
    for sign, step in ((-1, choice), (1, other)):
        for c in step.costs():
            entry = found.setdefault(c.name, [0.0, 0.0])
            entry[0] += sign * c.seconds
            entry[1] += sign * c.bytes
    return sorted(((s, b, name) for name, (s, b) in found.items() if s), key=lambda d: -abs(d[0]))


class SearchReport(DisplayedReport):
    """The report of a search.

    Args:
        found: its result.
    """

    def __init__(self, found: Found) -> None:
        self.found = found

    def _head(self) -> str:
        s = self.found.choice
        count = self.found.candidates + self.found.too_large
        size, chips = f"{s.model.parameters / 1e9:,.0f}B parameters", f"{s.machine.chips:,} chips"
        return (
            f"{s.model.name} ({size}) on {s.machine.name} ({chips}), {s.sequences:,} sequences of {s.length:,} tokens: "
            f"{count:,} layouts priced, {self.found.too_large:,} above {self.found.limit_bytes / 1e9:.1f} GB of memory"
        )

    def _line(self, step: Step) -> tuple[str, ...]:
        return (
            step.layout.text(),
            seconds_text(step.seconds),
            f"{step.tokens_per_s:,.0f}",
            f"{step.mfu:.1%}",
            bytes_text(peak(step).total),
        )

    def _reasons(self, other: Step) -> str:
        choice = self.found.choice
        lines = [f"against {other.layout.text()}: {seconds_text(other.seconds - choice.seconds)} slower"]
        for seconds, count, name in differences(choice, other)[:_REASONS]:
            moved = f" ({'-' * (count < 0)}{bytes_text(abs(count))})" if abs(count) >= 1e6 else ""
            lines.append(f"  {'+' if seconds > 0 else '-'}{seconds_text(abs(seconds))}  {name}{moved}")
        memory = peak(other).total - peak(choice).total
        lines.append(f"  {'+' if memory > 0 else '-'}{bytes_text(abs(memory))} of memory")
        return "\n".join(lines)

    def _limit(self) -> str:
        free = self.found.unlimited
        gain = self.found.choice.seconds - free.seconds
        if gain <= 0:
            return "memory rules out nothing faster"
        return (
            f"memory rules out {free.layout.text()}: {seconds_text(gain)} faster, but {bytes_text(peak(free).total)} "
            f"of {bytes_text(self.found.limit_bytes)}"
        )

    def _trainer(self) -> str:
        s = self.found.choice
        text = f"in sbpjax.train: Trainer(parallel={s.layout.parallel()}, options={s.layout.options(s.micro_batches)})"
        rest = []
        if s.layout.recompute not in ("none", "full"):
            rest.append(f"recomputation {s.layout.recompute!r} (it recomputes whole blocks, or what is cheap)")
        if s.layout.precision == "float8":
            rest.append("float8 (nn.Graph has it: config.enable_amp(True, dtype='fp8'))")
        if s.layout.virtual > 1:
            rest.append(f"{s.layout.virtual} groups of layers on a stage")
        return text + (f"\nwhich does not set {'; '.join(rest)}" if rest else "")

    def _blocks(self) -> Iterable[Any]:
        steps = (self.found.choice, *self.found.alternatives)
        yield self._head()
        head = ("layout", "step", "tokens/s a chip", "MFU", "memory")
        yield (
            "the choice, and the best of the next three combinations of axes",
            Table([self._line(s) for s in steps], head, right=(1, 2, 3, 4)),
        )
        yield "where the time of the choice goes", _costs(steps[0])
        yield _memory(steps[0]), self._limit()
        for other in self.found.alternatives:
            yield self._reasons(other)
        yield self._trainer()

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<h3>Time of a step</h3>{self._bars()}"

    def _bars(self) -> str:
        """Return the costs of all layouts as bars of the same scale, with their figures as tooltips."""
        steps = (self.found.choice, *self.found.alternatives)
        scale, parts = 900 / max(s.seconds for s in steps), []
        for row, step in enumerate(steps):
            x, y = 0.0, 24 + 44 * row
            parts.append(f'<text x="0" y="{y - 4}" font-size="12">{escape(step.layout.text())}</text>')
            for kind, colour in _COLOURS.items():
                for c in step.costs():
                    if c.kind == kind:
                        width = c.seconds * scale
                        title = escape(f"{c.name}: {seconds_text(c.seconds)}")
                        parts.append(
                            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="18" fill="{colour}" '
                            f'stroke="white"><title>{title}</title></rect>'
                        )
                        x += width
        y = 24 + 44 * len(steps)
        for k, (kind, colour) in enumerate(_COLOURS.items()):
            parts.append(f'<rect x="{130 * k}" y="{y}" width="10" height="10" fill="{colour}"/>')
            parts.append(f'<text x="{130 * k + 14}" y="{y + 10}" font-size="12">{kind}</text>')
        return svg(920, y + 20, parts)


POLICIES = tuple(RECOMPUTE)
