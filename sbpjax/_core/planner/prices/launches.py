"""Collective launches: conversions of a step that the compiler combines into one collective.

Compilers combine small collectives of one kind over one axis where none waits for another: the gradients of 70
parameters under ZeRO-1 are one reduce-scatter of 70 operands on a GPU, not 70. An activation that the next product
waits for goes alone. So the latency of a collective is paid once per combined one.

`launch_groups` finds, before anything is planned, values whose conversions do not wait for each other. Two values at
the same distance from the end of the program (or from its start) have no path between them: every parameter's gradient
is as far from the end as any other's, and every parameter is at the start. `launches` counts the collectives of a plan
as XLA's combiners do: in program order, with the first that does not wait, up to a number of bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sbpjax._core.jax_private import Var
from sbpjax._core.planner.exact import equation_traffic_bytes
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Copies, Plan
from sbpjax._core.programs.rules import moved_inside
from sbpjax.sbp import boxing

from .cost import CostModel


def launch_groups(program: Program, members: Mapping[Any, Sequence[Var]]) -> dict[Any, tuple]:
    """Return the group of every value whose conversions wait for none of the same group.

    Returns:
        Value → ``("start", distance)`` or ``("end", distance)``. Left out are values whose members are at unlike
        distances: the activations of equal layers, of which each waits for the one before.
    """
    start, end = _distances(program)
    found = {}
    for value, variables in members.items():
        starts, ends = {start.get(v, 0) for v in variables}, {end.get(v, 0) for v in variables}
        # The start before the end: parameters are all there from the beginning, whereas their layers are at unlike
        # distances from the end.
        if starts == {0}:
            found[value] = "start", 0
        elif len(ends) == 1:
            found[value] = "end", *ends
        elif len(starts) == 1:
            found[value] = "start", *starts
    return found


def _distances(program: Program) -> tuple[dict[Var, int], dict[Var, int]]:
    """Return for every variable the longest way to it from the inputs, and from it to the outputs, in equations."""
    start: dict[Var, int] = {}
    for eqn in program.eqns:
        far = max((start.get(v, 0) for v in eqn.invars if isinstance(v, Var)), default=0) + _length(eqn)
        start.update(dict.fromkeys(eqn.outvars, far))
    end: dict[Var, int] = {}
    for eqn in reversed(program.eqns):
        far = max((end.get(v, 0) for v in eqn.outvars), default=0) + _length(eqn)
        for v in eqn.invars:
            if isinstance(v, Var):
                end[v] = max(end.get(v, 0), far)
    return start, end


def _length(eqn) -> int:
    # Scalars take no part: adding up the norms of all gradients, one after the other, would put gradients at different
    # distances.
    return int(any(getattr(v.aval, "shape", ()) for v in eqn.outvars))


def launches(plan: Plan, model: CostModel) -> dict[str, int]:
    """Return the number of collectives that one run of a plan launches, by kind of `Step`.

    Args:
        plan: the plan.
        model: the prices, with the collectives that the compiler combines.
    """
    found: Counter = Counter()
    steps: list[tuple] = []  # kind and axes, bytes, the steps before it that it waits for as bits of a number
    copies = Copies(plan.sizes)

    def read(variable, target) -> int:
        """Return the steps that the reader of a variable waits for."""
        if not isinstance(variable, Var):
            return 0
        source = copies.source(variable, target)
        waits = copies.known[variable][source] or 0
        if source == target:
            return waits
        aval: Any = variable.aval
        for step in boxing.path(aval.shape, aval.dtype.itemsize, copies.sizes, source, target):
            if step.bytes:
                waits |= add((step.kind, step.axis), step.bytes, waits)
        # The next reader in this layout takes the same copy and launches nothing.
        copies.known[variable][target] = waits
        return waits

    def add(key: tuple, nbytes: int, waits: int) -> int:
        steps.append((key, nbytes, waits))
        return 1 << len(steps) - 1

    everywhere = (-1,) * len(plan.sizes)
    for variable, codes in (*zip(plan.program.invars, plan.in_codes), *((v, everywhere) for v in plan.program.consts)):
        copies.put(variable, codes)
    for i, eqn in enumerate(plan.program.eqns):
        waits = 0
        for variable, target in zip(eqn.invars, plan.ins(i), strict=True):
            waits |= read(variable, target)
        if i in plan.bodies:
            # XLA's combiners work on one computation at a time, and a loop's body is one of its own: nothing in it is
            # combined with collectives outside, or with the next iteration's.
            for kind, count in launches(plan.bodies[i], model).items():
                found[kind] += count * eqn.params["length"]
        elif inside := equation_traffic_bytes(eqn, plan.strategies[i], plan.sizes):
            permuted = [m for m in moved_inside(eqn, plan.strategies[i], plan.sizes) if m.kind == "ppermute"]
            found["ppermute"] += sum(m.launches for m in permuted)
            # In a loop that was planned on its own there may be several.
            if summed := inside - sum(m.bytes for m in permuted):
                waits |= add(("psum", i), summed, waits)
        for variable, codes in zip(eqn.outvars, plan.outs(i), strict=True):
            copies.put(variable, codes, waits)
    for variable, target in zip(plan.program.outvars, plan.out_codes, strict=True):
        read(variable, target)
    found.update(_combine_collectives(steps, model))
    return {kind: count for kind, count in found.items() if count}


def _combine_collectives(steps: list[tuple], model: CostModel) -> Counter:
    """Return the number of collectives by kind after combining those that do not wait for each other."""
    waits = [w for _, _, w in steps]
    left = list(range(len(steps)))
    found: Counter = Counter()
    while left:
        key, full, _ = steps[left[0]]
        group, bits, waited, rest = [left[0]], 1 << left[0], waits[left[0]], []
        for i in left[1:]:
            fits = key[0] in model.combines and steps[i][0] == key and full + steps[i][1] <= model.combined_bytes
            # ``waits`` is transitive: of two combined steps each waits for all that the other waits for.
            if fits and not waits[i] & bits and not waited >> i & 1:
                group.append(i)
                bits |= 1 << i
                waited |= waits[i]
                full += steps[i][1]
            else:
                rest.append(i)
        found[key[0]] += 1
        left = rest
        if len(group) > 1:  # a step that waits for one of them waits for all, and for their dependencies
            waits = [waited if bits >> i & 1 else w | bits | waited if w & bits else w for i, w in enumerate(waits)]
    return found
