"""Report of a search over layouts: the choice, why each of its sizes, where time and memory go, the next best.

llama-70b on v5p:8x16x16, 512 sequences of 8,192 tokens: 13,686 layouts priced
choice: fsdp 256 × context 8; micro-batch 2, recompute none: 2.78 s a step, MFU 72 %, 61.1 of 95.0 GB
context 8 | 1,024 of 8,192 tokens of a sequence | 4: needs 102.3 GB | 16: +0.12 s (fsdp 128)
…
pipeline 4 × fsdp 512 is 0.21 s slower:
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
from sbpjax._core.planner.clusters.search import DIMENSIONS, Found
from sbpjax._core.planner.clusters.step import Step

_MOST = 10
_EQUAL = 0.02  # of the step time: published steps are 6 % from the model (median), steps of one machine less
_REASONS = 4
_LABELS = {"virtual": "layer groups", "micro_batch": "micro-batch"}
_MEMORY = {
    "gathered": "gathered for use",
    "activations": "activations kept",
    "working": "working set of a block",
    "runtime": "reserved by the runtime",
}
_KEPT = {
    "none": "every activation, until its backward",
    "dots": "results of matmuls; pointwise operations and attention run again",
    "dots_but_up": "results of matmuls but the MLP's first; the rest runs again",
    "half_dots": "attention and every second matmul; the rest runs again",
    "full": "the input of each block; its forward runs again",
}
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
            seconds_text(c.hidden) * (c.hidden >= 1e-6),
            bytes_text(c.bytes) * bool(c.bytes),
        )
        for c in costs[:_MOST]
    ]
    return Table(rows, ("cost", "kind", "time", "share", "hidden", "traffic of a chip"), right=(2, 3, 4, 5))


def _memory(step: Step) -> Table:
    found = peak(step)
    rows = [(_MEMORY.get(name, name), bytes_text(size)) for name, size in vars(found).items() if size]
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


def _shares(step: Step) -> dict[str, str]:
    """Return what a chip holds by every size above one of a layout, and by its options."""
    layout, model = step.layout, step.model
    layers, replica = -(-model.layers // layout.pipeline), "a copy of the parameters, its own sequences"
    count, size, parts = step.micro_batches, layout.micro_batch, layout.fsdp * layout.tensor * layout.pipeline
    also = " ".join(f"× {axis}" for axis in ("tensor", "pipeline") if getattr(layout, axis) > 1)
    fsdp = f"1/{parts:,} of parameters and their state" + f" (fsdp {also})" * bool(also)
    shares = {
        "slices": replica,
        "pipeline": f"{layers} of {model.layers} layers",
        "virtual": "groups of layers on its stage, which shorten the bubble",
        "data": replica,
        "fsdp": f"{fsdp}, its own sequences",
        "expert": f"{model.experts // layout.expert} of {model.experts} experts, its own sequences",
        "context": f"{step.length // layout.context:,} of {step.length:,} tokens of each sequence",
        "tensor": f"{model.heads // layout.tensor} of {model.heads} heads, 1/{layout.tensor} of every matrix",
    }
    used = {name: text for name, text in shares.items() if getattr(layout, name) > 1}
    micro = f"{size} sequence{'s' * (size > 1)} at a time, {count:,} time{'s' * (count > 1)} a step"
    return {**used, "micro_batch": micro, "recompute": _KEPT[layout.recompute]}


def _links(step: Step) -> dict[str, str]:
    """Return for every axis which links its ranks communicate over, and their speed for one chip."""
    machine, inner = step.machine, 1
    network = machine.network()
    found = {"slices": f"{network.bytes_per_s / 1e9:.0f} GB/s between slices"} if network else {}
    for axis, size in step.layout.sizes().items():
        inner *= size
        within = inner <= machine.dims[-1]
        where = "torus" if machine.chip.torus else "within a host" if within else "between hosts"
        if axis in step.links:
            found[axis] = f"{step.links[axis].bytes_per_s / 1e9:.0f} GB/s {where}"
    return found


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
            f"{count:,} layouts priced, of which {self.found.too_large:,} need more than "
            f"{self.found.limit_bytes / 1e9:.1f} GB of memory"
        )

    def _choice(self) -> str:
        s = self.found.choice
        times: dict[str, float] = {}
        for c in s.costs():
            times[c.kind] = times.get(c.kind, 0.0) + c.seconds
        return (
            f"choice: {s.layout.text()}\n{seconds_text(s.seconds)} a step, {s.tokens_per_s:,.0f} tokens/s a chip, MFU "
            f"{s.mfu:.1%}, {bytes_text(peak(s).total)} of {bytes_text(self.found.limit_bytes)} of memory\n"
            f"time: {', '.join(f'{kind} {t / s.seconds:.1%}' for kind, t in times.items())}"
        )

    def _sizes(self) -> Table:
        """Return each size of the choice, the share of a rank, and the price of the next smaller and larger size."""
        s, rows = self.found.choice, []
        links = _links(s)
        for name, share in _shares(s).items():
            value = getattr(s.layout, name)
            values = [v for n, v in self.found.least_bytes if n == name]
            if isinstance(value, str):
                others = "; ".join(self._price(name, v) for v in values if v != value)
                rows.append((name, value, "", share, others, ""))
                continue
            near = max((v for v in values if v < value), default=0), min((v for v in values if v > value), default=0)
            prices = [self._price(name, v) if v else "" for v in near]
            rows.append((_LABELS.get(name, name), str(value), links.get(name, ""), share, *prices))
        return Table(rows, ("", "size", "links", "a chip holds", "smaller", "larger"), right=(1,))

    def _price(self, name: str, value: int | str) -> str:
        """Return the seconds that the fastest layout with another value loses and what it changes, or its memory."""
        step, choice = self.found.fastest.get((name, value)), self.found.choice
        if step is None:
            return f"{value}: needs {bytes_text(self.found.least_bytes[name, value])}"
        changed = ", ".join(
            f"{_LABELS.get(n, n)} {getattr(step.layout, n)}"
            for n in DIMENSIONS
            if n != name and getattr(step.layout, n) != getattr(choice.layout, n)
        )
        return f"{value}: +{seconds_text(step.seconds - choice.seconds)}{f' ({changed})' * bool(changed)}"

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
        lines = [f"{other.layout.text()} is {seconds_text(other.seconds - choice.seconds)} slower:"]
        for seconds, count, name in differences(choice, other)[:_REASONS]:
            moved = f" ({'+' if count > 0 else '-'}{bytes_text(abs(count))})" if abs(count) >= 1e6 else ""
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
            f"memory rules out {free.layout.text()}: {seconds_text(gain)} faster, but it needs "
            f"{bytes_text(peak(free).total)}"
        )

    def _assumptions(self) -> str:
        chip = self.found.choice.machine.chip
        e = chip.efficiency
        return (
            f"assumed: matmuls at {e.products:.0%} and attention at {e.attention:.0%} of {chip.flops_bf16 / 1e12:,.0f} "
            f"TFLOP/s, HBM at {e.memory:.0%} of {chip.memory_bytes_per_s / 1e9:,.0f} GB/s, links at {e.links:.0%}; "
            f"{e.hidden:.0%} of a tensor axis's transfers beside matmuls, fsdp's beside the layers; no stragglers. "
            f"Layouts within {_EQUAL:.0%} of each other are as good as equal."
        )

    def _trainer(self) -> str:
        s = self.found.choice
        text = (
            f"in sbpjax.train: Trainer(batch_size={s.sequences}, parallel={s.layout.parallel()}, "
            f"options={s.layout.options(s.micro_batches)}) with sequences of {s.length:,} tokens"
        )
        rest = []
        if s.layout.recompute not in ("none", "full"):
            rest.append(f"recomputation {s.layout.recompute!r} (it recomputes whole blocks, or what is cheap)")
        if s.layout.precision == "float8":
            rest.append("float8 (nn.Graph has it: config.enable_amp(True, dtype='fp8'))")
        if s.layout.virtual > 1:
            rest.append(f"{s.layout.virtual} groups of layers on a stage (an interleaved schedule)")
        return text + (f"\nThe trainer has no option for {'; '.join(rest)}." if rest else "")

    def _blocks(self) -> Iterable[Any]:
        steps = (self.found.choice, *self.found.alternatives)
        yield self._head()
        yield self._choice()
        yield (
            "why these sizes: what the next smaller or larger would cost, with the others chosen anew (in brackets)",
            self._sizes(),
            self._limit(),
        )
        head = ("layout", "step", "tokens/s a chip", "MFU", "memory")
        yield (
            "the choice, and the best layout of each of the next three combinations of axes",
            Table([self._line(s) for s in steps], head, right=(1, 2, 3, 4)),
        )
        yield (
            "where the time of the choice goes: times add up to the step; hidden time runs beside compute",
            _costs(steps[0]),
            self._assumptions(),
        )
        yield _memory(steps[0])
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
