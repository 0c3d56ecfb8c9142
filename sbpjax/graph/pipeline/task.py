"""Pipeline task: a compiled program on its stage's mesh.

A task is planned and lowered like any program (`_core.compiler.compile`). Neighbours have to agree on the layout of the
values between them: a value of an earlier task comes as that one's plan left it, a value from another placement in the
layout in which it was sent, and a sum that goes through all iterations in a layout of the planner's choice, the same
before and after, so that gradients stay partial sums until the loop is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jax.core import ShapedArray

from sbpjax._core.compiler import options
from sbpjax._core.compiler.compile import CompiledProgram, compile_program
from sbpjax._core.compiler.launch import Launcher
from sbpjax._core.jax_private import Literal, Var
from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.programs.normalise import Program
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.layout import Layout, layout_of
from sbpjax.sbp.placement import placement as Placement

from .partition import Task


@dataclass
class CompiledTask:
    """A planned task.

    Attributes:
        task: the task.
        program: its program.
        in_layouts: of its inputs.
        out_layouts: of its outputs.
        donate: positions of the inputs that it takes over.
        signals: whether it also returns a number, after its outputs, to wait for.
        launcher: runs it in an exchange.
    """

    task: Task
    program: CompiledProgram
    donate: tuple[int, ...]
    signals: bool
    executable: object = None

    @cached_property
    def launcher(self) -> Launcher:
        return Launcher(lambda _: self.executable, "update")

    @property
    def in_layouts(self) -> tuple[Layout, ...]:
        """The layouts of the inputs."""
        return self.program.in_layouts

    @property
    def out_layouts(self) -> tuple[Layout, ...]:
        """The layouts of the outputs."""
        return self.program.out_layouts


def replicated_layout(placement: Placement, aval) -> Layout:
    """Return the layout of a value that every rank has."""
    return layout_of(placement, (B,) * len(placement.hierarchy), tuple(aval.shape), aval.dtype)


def arrival_layout(layout: Layout, target: Placement) -> Layout:
    """Return the layout in which a value arrives that is sent in a layout: the same, where the grids are."""
    if layout.placement.hierarchy == target.hierarchy:
        return layout_of(target, layout.codes, layout.shape, layout.dtype)
    return replicated_layout(target, layout)


def can_travel(layout: Layout, target: Placement) -> bool:
    """Return whether a value can be sent in its layout, without conversion."""
    if layout.partial_axes:
        return False
    if layout.placement.hierarchy == target.hierarchy:
        return True
    if layout.placement.spans_processes or target.spans_processes:  # blocks go as they are
        return all(code == B for code in layout.codes)
    return layout.is_even


def plan_task(
    task: Task,
    layouts: Mapping[Var, Layout],
    consts: Mapping[Var, object],
    *,
    tied: Mapping[Var, Var],
    pins: Mapping[Var, tuple],
    sent: Mapping[Var, Sequence[Placement]],
    donate: Sequence[Var] = (),
    signals: bool = False,
    cost: CostModel,
    lowering: str,
    compiler_options: Mapping[str, object],
) -> CompiledTask:
    """Return a task planned.

    Args:
        task: the task.
        layouts: the layouts of its inputs; one that is absent and not tied is a number, the same on every rank.
        consts: the constants of its program.
        tied: output → the input in whose layout it comes back.
        pins: output → the nd-sbp that it must have.
        sent: output → where it is sent.
        donate: the inputs that it takes over.
        signals: whether it returns a number to wait for.
        cost: the prices.
        lowering: as `compile_program`.
        compiler_options: the user's options of XLA's compiler.
    """
    place = task.placement
    position = {v: i for i, v in enumerate(task.ins)}
    in_layouts = [layouts[v] if v in layouts else replicated_layout(place, v.aval) for v in task.ins]
    # An input that comes back as an output, and has no layout yet, gets one by this task's plan: a sum of gradients.
    free = [position[v] for v in tied.values() if v in position and v not in layouts]
    used = {v: consts[v] for eqn in task.eqns for v in eqn.invars if not isinstance(v, Literal) and v in consts}
    # Something to wait for that is never donated: the task's own outputs may be gone when the driver waits.
    signal = [Literal(np.zeros((), np.int32), ShapedArray((), np.int32))] if signals else []
    flat = Program(list(task.ins), used, task.eqns, [*task.outs, *signal])
    taken = tuple(position[v] for v in donate)

    def plan(forced: Mapping[Var, tuple]) -> CompiledProgram:
        wanted: list = []
        for v in task.outs:
            if v in tied:
                wanted.append(position[tied[v]])
            else:
                wanted.append(forced.get(v, pins.get(v)))
        return compile_program(
            flat,
            place,
            in_layouts,
            wanted + [None] * signals,
            taken,
            free_inputs=free,
            cost=cost,
            lowering=lowering,
            compiler_options=options.compiler_options(place, compiler_options),
        )

    made = plan({})
    forced = {}
    for v, layout in zip(task.outs, made.out_layouts, strict=False):
        if not all(can_travel(layout, target) for target in sent.get(v, ())):
            # Summands are added first; the whole is gathered only if even the sum cannot be sent in its layout.
            codes = layout.with_codes(tuple(B if c == P else c for c in layout.codes))
            if not all(can_travel(codes, target) for target in sent[v]):
                codes = replicated_layout(place, v.aval)
            forced[v] = codes.sbp
    # Planned again with pins, since a conversion after the plan would be paid on top of the plan's own cost.
    return CompiledTask(task, plan(forced) if forced else made, taken, signals)
