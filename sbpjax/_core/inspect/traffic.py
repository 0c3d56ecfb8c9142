"""Traffic of a step by kind of collective: as planned, and as compiled.

    kind             planned     compiled   difference
    all-gather       42.4 MB      42.4 MB        0.0 %
    reduce-scatter   42.4 MB      42.3 MB       -0.1 %

Bytes are those that one device receives over the interconnect in one run. The compiler may express a kind in another
way (an all-reduce fused with a slice is a reduce-scatter, a pair of asynchronous halves is one collective, a loop's
body runs as often as the loop iterates); `_core.compiler.hlo` reads all of them. Collectives that the TPU compiler
writes as all-reduces (`sbpjax.sbp.tpu_tiles`, `_core.planner.prices.links`) are planned as such. A sum that only
a rounding to bfloat16 reads is planned in float32; libtpu 0.0.42 sends it in bfloat16, half the bytes. XLA:CPU (jaxlib
0.10.2) computes bfloat16 in float32 and sends that, twice the planned bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sbpjax._core.compiler import hlo
from sbpjax._core.planner.control import body_plans, inner_bytes
from sbpjax._core.planner.prices.cost import PRESETS
from sbpjax._core.planner.prices.launches import launches
from sbpjax._core.planner.prices.links import preset_of, written_as_all_reduce
from sbpjax._core.programs.primitives import COLLECTIVES, CONTROL
from sbpjax._core.programs.rules import moved_inside
from sbpjax.errors import MixedTensorError
from sbpjax.sbp.layout import local_shape
from sbpjax.sbp.tpu_tiles import lowers_to_all_reduce

from .display import DisplayedReport, Table, bytes_text

_NOTE = "XLA sends 16-bit floats as float32 on CPUs; GPUs and TPUs send the planned dtypes"


@dataclass(frozen=True, repr=False)
class Traffic(DisplayedReport):
    """Bytes on the interconnect per device and run, by kind.

    Attributes:
        planned: the plan's, by HLO's names of the kinds.
        compiled: the compiled program's.
        counts: how many collectives of each kind run in the compiled program.
        note: why they differ, where that is known.
    """

    planned: dict[str, int]
    compiled: dict[str, int]
    counts: dict[str, int]
    note: str = ""

    @property
    def kinds(self) -> list[str]:
        """Every kind that is on either side."""
        return sorted({*self.planned, *self.compiled})

    def difference(self, kind: str | None = None) -> float:
        """Return the relative difference of compiled and planned bytes, for a kind or in total."""
        if kind is None:
            planned, compiled = sum(self.planned.values()), sum(self.compiled.values())
        else:
            planned, compiled = self.planned.get(kind, 0), self.compiled.get(kind, 0)
        if planned == compiled:
            return 0.0
        return (compiled - planned) / planned if planned else float("inf")

    def _blocks(self) -> Iterable[Any]:
        head, rows = ("kind", "planned", "compiled", "difference", "number"), []
        for kind in self.kinds:
            share = self.difference(kind)
            change = f"{100 * share:+.1f} %" if share != float("inf") else "new"
            rows.append((
                kind, bytes_text(self.planned.get(kind, 0)), bytes_text(self.compiled.get(kind, 0)), change,
                str(self.counts.get(kind, 0)),
            ))  # fmt: skip
        planned, compiled = sum(self.planned.values()), sum(self.compiled.values())
        change = f"{100 * self.difference():+.1f} %"
        rows.append(("total", bytes_text(planned), bytes_text(compiled), change, str(sum(self.counts.values()))))
        yield Table(rows, head, right=range(1, 5))
        if self.note and planned != compiled:
            yield self.note


def planned_bytes(plan, placement=None) -> dict[str, int]:
    """Return the bytes that one device receives in one run of a plan, by HLO's name of the kind.

    Args:
        plan: the plan.
        placement: where it runs. The TPU compiler makes all-reduces of small sums and of collectives over a whole
            torus, which are twice the bytes; elsewhere the sum of all kinds is ``plan.bytes``.
    """
    on_tpu = placement is not None and placement.type == "tpu"
    written = written_as_all_reduce(placement) if on_tpu else None
    found: dict[str, int] = {}
    for boxing in plan.boxings:
        codes = boxing.source
        for step in boxing.steps:
            codes = (*codes[: step.axis], step.target, *codes[step.axis + 1 :])
            if step.bytes:
                block = local_shape(boxing.shape, codes, plan.sizes)
                whole = written is not None and _is_all_reduce(step, block, written)
                kind = "psum" if whole else step.kind
                _add(found, COLLECTIVES[kind], (2 * step.bytes if whole else step.bytes) * boxing.times)
    _add_inside(found, plan, 1, placement)
    return {kind: count for kind, count in found.items() if count}


def planned_launches(plan, placement) -> dict[str, int]:
    """Return the number of collectives that one run of a plan launches, by HLO's name of the kind.

    Args:
        plan: the plan.
        placement: where it runs: combining depends on the compiler (`_core.planner.prices.launches`).
    """
    model = PRESETS["cpu"] if placement.type == "cpu" else preset_of(placement)
    return {COLLECTIVES.get(kind, kind): count for kind, count in launches(plan, model).items()}


def _is_all_reduce(step, block: tuple[int, ...], written: list) -> bool:
    """Return whether the TPU compiler makes an all-reduce of a scatter or gather that ends in such blocks."""
    is_small = step.kind == "psum_scatter" and lowers_to_all_reduce(block, step.target)
    return is_small or step.is_all_reduce(written[step.axis])


def _add(found: dict[str, int], kind: str, count: int) -> None:
    found[kind] = found.get(kind, 0) + count


def _add_inside(found: dict[str, int], plan, times: int, placement) -> None:
    """Add the traffic inside equations: a maximum over a split dim, the body of a loop planned on its own."""
    for i, eqn in enumerate(plan.program.eqns):
        if i in plan.bodies:  # its boxings are among the plan's
            _add_inside(found, plan.bodies[i], times * eqn.params["length"], placement)
        elif eqn.primitive.name in CONTROL:
            if inner_bytes(eqn, plan.strategies[i], plan.sizes):
                bodies = [planned_bytes(b, placement) for b in body_plans(eqn, plan.sizes, plan.ins(i), plan.outs(i))]
                if eqn.primitive.name == "cond":
                    bodies = [max(bodies, key=lambda kinds: sum(kinds.values()))]
                for body in bodies:
                    for kind, count in body.items():
                        _add(found, kind, count * times * eqn.params.get("length", 1))
        else:
            for moved in moved_inside(eqn, plan.strategies[i], plan.sizes):
                _add(found, COLLECTIVES[moved.kind], moved.bytes * times)


def traffic(plan, text: str, placement=None) -> Traffic:
    """Return the traffic of a plan, and of its compiled program."""
    compiled: dict[str, int] = {}
    counts: dict[str, int] = {}
    for c in hlo.collectives(text):
        compiled[c.kind] = compiled.get(c.kind, 0) + c.interconnect_bytes
        counts[c.kind] = counts.get(c.kind, 0) + c.count
    on_cpu = placement is not None and placement.type == "cpu"
    is_narrow = any(boxing.dtype in ("bfloat16", "float16") for boxing in plan.boxings)
    return Traffic(planned_bytes(plan, placement), compiled, counts, _NOTE if on_cpu and is_narrow else "")


def traffic_of(program) -> Traffic:
    """Return the traffic of a `sbpjax.graph.program.program.Program`; it is compiled if it was not."""
    if program.plan is None:
        raise MixedTensorError(
            f"traffic of {program.operation}",
            "no global tensor among the arguments and the state",
            "a program on one device moves nothing",
            "x.to_global(placement, sbp)",
        )
    return traffic(program.plan, program.compile().as_text(), program.placement)
