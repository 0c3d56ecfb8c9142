"""Weight gradients as tasks of their own (zero bubble): other stages wait only for gradients of inputs.

B    other stages wait for it          B0 ─send→ …
W    the rest of the backward             W0 whenever the stage has nothing else to do
"""

from __future__ import annotations

from dataclasses import replace

from sbpjax._core.jax_private import Var
from sbpjax._core.programs.primitives import PRODUCTS

from .partition import Partition, Task, with_sources


def with_weight_tasks(cut: Partition) -> Partition:
    """Return a partition whose backward tasks that send something are split in two."""
    sent = {s.value for s in cut.sends}
    tasks: list[Task] = []
    for task in cut.tasks:
        tasks += _split(task, sent, cut) if task.backward and sent & set(task.outs) else [task]
    return replace(cut, tasks=tasks)


def _split(task: Task, sent: set[Var], cut: Partition) -> list[Task]:
    elsewhere = {v for t in cut.tasks if t is not task for v in t.ins}
    needed = {v for v in task.outs if v in sent or v in elsewhere}
    urgent, later = [], []
    for eqn in reversed(task.eqns):
        if any(v in needed for v in eqn.outvars) or eqn.effects:
            urgent.append(eqn)
            needed.update(v for v in eqn.invars if isinstance(v, Var))
        else:
            later.append(eqn)
    urgent, later = urgent[::-1], later[::-1]
    # A half without a product is too small to be worth a launch of its own.
    if not any(eqn.primitive.name in PRODUCTS for eqn in later):
        return [task]
    # Equations that depend on no placed value are repeated in the second half: cheaper than to keep their results.
    free = {v: eqn for eqn in urgent for v in eqn.outvars if cut.where.get(v) is None}
    later = with_sources(later, free)
    first = _task(task, urgent, {v for eqn in later for v in eqn.invars if isinstance(v, Var)})
    return [first, replace(_task(task, later, set()), weights=True, forward=False)]


def _task(task: Task, eqns: list, wanted: set[Var]) -> Task:
    made = {v for eqn in eqns for v in eqn.outvars}
    own = {v for eqn in task.eqns for v in eqn.outvars}
    reads = dict.fromkeys(v for eqn in eqns for v in eqn.invars if isinstance(v, Var) and v not in made)
    ins = [v for v in reads if v in task.ins or v in own]
    outs = [v for v in task.outs if v in made]
    outs += [v for v in dict.fromkeys(v for eqn in eqns for v in eqn.outvars) if v in wanted - set(outs)]
    return replace(task, eqns=eqns, ins=ins, outs=outs)
