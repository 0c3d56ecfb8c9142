"""Search over layouts of a cluster: every division of the axes that fits the machine, ranked by modelled step time.

    found = search(transformer("llama-70b"), machine("v5p:8x16x16"), length=8192, sequences=512)
    found.choice.layout.text()

All sizes of tensor, context, expert, pipeline, fsdp and data whose product is the number of chips of a slice, together
with the micro-batch, the recomputation and the groups of an interleaved pipeline, are priced; those above the memory
limit are left out. Slices hold replicas: only gradients cross the network between them. A candidate costs about 100 µs,
memory first, so that the 200,000 of a pod take seconds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sbpjax.errors import PlacementError

from .layout import Layout
from .machine import Machine
from .memory import peak
from .step import Step
from .transformer import Transformer

_MICRO = (1, 2, 4, 8, 16, 32)
_VIRTUAL = (1, 2, 4)
_ALTERNATIVES = 3
# The variables of the search, in the order of the report.
DIMENSIONS = ("pipeline", "virtual", "data", "fsdp", "expert", "context", "tensor", "micro_batch", "recompute")


@dataclass(frozen=True)
class Found:
    """The result of a search.

    Attributes:
        choice: the fastest step that fits.
        alternatives: the fastest layouts of the three next best combinations of axes, ``fsdp × tensor`` say.
        unlimited: the fastest step without the memory limit.
        limit_bytes: the memory limit of a chip.
        candidates: how many layouts were priced.
        too_large: how many more need more memory.
        fastest: by the name and value of each of `DIMENSIONS`, the fastest step that fits.
        least_bytes: by the same, the memory of the smallest layout.
    """

    choice: Step
    alternatives: tuple[Step, ...]
    unlimited: Step
    limit_bytes: float
    candidates: int
    too_large: int
    fastest: Mapping[tuple[str, int | str], Step]
    least_bytes: Mapping[tuple[str, int | str], float]


def search(
    model: Transformer,
    machine: Machine,
    length: int,
    sequences: int,
    *,
    base: Layout | None = None,
    recompute: Sequence[str] = ("none", "full"),
    limit_bytes: float | None = None,
) -> Found:
    """Return the fastest layout of a model on a machine, and the next best.

    Args:
        model: the sizes.
        machine: where it trains.
        length: tokens of a sequence.
        sequences: of a step.
        base: the options that are not searched: precision, bytes of state, fusion. Defaults by `Layout`.
        recompute: the policies of `layout.RECOMPUTE` to choose from.
        limit_bytes: the memory of a chip; by default its data sheet's.

    Raises:
        PlacementError: no layout divides the batch, or none fits into memory.
    """
    limit = machine.chip.memory_bytes if limit_bytes is None else limit_bytes
    best: dict[tuple[str, ...], Step] = {}  # by the axes in use
    fastest: dict[tuple[str, int | str], Step] = {}
    least_bytes: dict[tuple[str, int | str], float] = {}
    unlimited = None
    count = too_large = 0
    for layout in candidates(model, machine, sequences, base or Layout(), recompute):
        step = Step(model, layout, machine, length, sequences)
        needed = peak(step).total
        values = [(name, getattr(layout, name)) for name in DIMENSIONS]
        for key in values:
            least_bytes[key] = min(needed, least_bytes.get(key, math.inf))
        if unlimited is None or step.seconds < unlimited.seconds:
            unlimited = step
        if needed > limit:
            too_large += 1
            continue
        count += 1
        axes = tuple(axis for axis, size in layout.sizes().items() if size > 1)
        if axes not in best or step.seconds < best[axes].seconds:
            best[axes] = step
        for key in values:
            if key not in fastest or step.seconds < fastest[key].seconds:
                fastest[key] = step
    operation = f"search({model.name!r}, machine({machine.name!r}), length={length}, sequences={sequences})"
    if unlimited is None:
        rule = "each rank of the batch has whole sequences, and heads and layers divide over tensor and pipeline"
        raise PlacementError(operation, f"no layout of {machine.chips} chips", rule, "a larger batch, or fewer chips")
    if not best:
        seen = f"the smallest of {too_large} layouts needs {min(least_bytes.values()) / 1e9:.1f} GB"
        rule = f"a chip of {machine.name} has {limit / 1e9:.1f} GB"
        raise PlacementError(operation, seen, rule, "more chips, or a smaller batch")
    choice, *others = sorted(best.values(), key=lambda s: s.seconds)
    return Found(choice, tuple(others[:_ALTERNATIVES]), unlimited, limit, count, too_large, fastest, least_bytes)


def candidates(
    model: Transformer, machine: Machine, sequences: int, base: Layout, recompute: Sequence[str]
) -> Iterator[Layout]:
    """Yield every layout of a model on a machine that divides the batch, without regard to memory."""
    chips = machine.chips // machine.slices
    # Between hosts a tensor axis sends activations of every block over the network; a torus has no hosts.
    widest = min(model.heads, machine.dims[-1] if not machine.chip.torus else 64)
    for tensor in _divisors(chips, widest):
        if model.heads % tensor:
            continue
        for pipeline in _divisors(chips // tensor, min(model.layers, 64)):
            for context in _divisors(chips // tensor // pipeline, 16):
                left = chips // tensor // pipeline // context
                for expert in _divisors(left, model.experts) if model.experts else (1,):
                    if model.experts and model.experts % expert:
                        continue
                    for data in _divisors(left // expert, left):
                        fsdp = left // expert // data
                        axes = dataclasses.replace(
                            base, slices=machine.slices, tensor=tensor, pipeline=pipeline, context=context,
                            expert=expert, data=data, fsdp=fsdp, zero1=data > 1 and fsdp == 1,
                        )  # fmt: skip
                        yield from _with_options(model, axes, sequences, recompute)


def _with_options(model: Transformer, axes: Layout, sequences: int, recompute: Sequence[str]) -> Iterator[Layout]:
    each, rest = divmod(sequences, axes.batch_ranks)
    if rest or not each:
        return
    for micro_batch in _MICRO:
        if each % micro_batch:
            break
        if each // micro_batch < axes.pipeline - 1:  # most stages would wait
            break
        for policy in recompute:
            for virtual in _VIRTUAL if axes.pipeline > 1 else (1,):
                if axes.pipeline * virtual <= model.layers:
                    yield dataclasses.replace(axes, micro_batch=micro_batch, recompute=policy, virtual=virtual)


def _divisors(number: int, most: int) -> list[int]:
    return [d for d in range(1, min(number, most) + 1) if number % d == 0]
