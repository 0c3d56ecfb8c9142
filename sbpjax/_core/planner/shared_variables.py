"""Shared variables: equations at the same place of repeated layers share one choice of strategy.

The list of equation forms of a 48-layer GPT step holds three long repetitions: the forward layers, the backward layers
and the optimizer's update of the layers' parameters. `classes` gives equations at the same place of a repetition
(`_core.programs.repeated_layers`) the same class, so a plan's size does not grow with depth. Not all layers of equal
form are equal to the planner: `tie_equations` also compares the pins, there and nearby.
"""

from __future__ import annotations

from collections.abc import Sequence

from sbpjax._core.programs.repeated_layers import repetitions

# A repetition of at least so many equations is one of layers or their updates: its period holds everything that could
# distinguish its iterations.
_LAYER = 12
# The distance, in equations, within which equations of one form are compared by their surroundings.
_ROUNDS = 4


def tie_equations(numbers: Sequence[int], program, marks: dict, labels: dict | None = None) -> list[int]:
    """Return for every equation of a program the class it is tied to.

    A long repetition is tied from its first iteration to its last, but for equations whose neighbours differ: those of
    the first layer that read the table, those of the last that the head reads. Among few equations a repetition may be
    chance; there only those in equal surroundings are tied.

    ``labels``: for a loop's position, the labels of its operands and of its outputs (`refine`).
    """
    result = list(range(len(numbers)))
    # One equation far within a layer: looking two far left the plans as they were, and made the programs a third
    # larger; tying the neighbours of table and head as well cost 6 % of the bytes of a tensor-parallel step.
    plain, beside, far = (refine(numbers, program, marks, labels, rounds) for rounds in (0, 1, _ROUNDS))
    for start, stop, period in repetitions(plain):
        if period >= _LAYER:
            first: dict = {}
            for i in range(start, stop):
                result[i] = first.setdefault(((i - start) % period, beside[i]), i)
                # Unlike any other number, so that the second search runs over the rest.
                far[i] = -1 - i
    for i, c in enumerate(classes(far)):
        if far[i] >= 0:
            result[i] = c
    return result


def classes(forms: Sequence[int]) -> list[int]:
    """Return for every position the class it is tied to: a number that equal places of a repetition share.

    Args:
        forms: the number of each equation's form, in program order.
    """
    result = list(range(len(forms)))
    for start, stop, period in repetitions(forms):
        for i in range(start + period, stop):
            result[i] = result[i - period]
    return result


def refine(
    numbers: Sequence[int], program, marks: dict, labels: dict | None = None, rounds: int = _ROUNDS
) -> list[int]:
    """Return numbers that also distinguish equations by their surroundings, up to ``rounds`` equations away.

    The optimizer multiplies the gradients of the query and of the output matrix by the same constant, but one gradient
    is split by columns and the other by rows: their updates must not be tied to each other. They differ in the pins, a
    few equations away.

    ``labels``: for a loop's position, the labels of its operands and of its outputs, which replace their positions,
    so that the gradients of equal layers leave a loop as equals.
    """
    none: tuple = (None, None)
    producer: dict = {}
    consumers: list[list] = [[] for _ in program.eqns]
    fixed: list[list] = [[] for _ in program.eqns]
    operands: list[list] = []
    for i, eqn in enumerate(program.eqns):
        sources = []
        given, made = (labels or {}).get(i, none)
        for position, v in enumerate(eqn.invars):
            found = producer.get(v) if not hasattr(v, "val") else None
            if found is None:
                fixed[i].append((position, marks.get(("in", v)) if not hasattr(v, "val") else None))
            else:
                sources.append((position, *found))
                consumers[found[0]].append((found[1], given[position] if given else position, i))
        operands.append(sources)
        for position, v in enumerate(eqn.outvars):
            producer[v] = (i, made[position] if made else position)
            mark = marks.get(("out", v))
            if mark is not None:
                fixed[i].append((-1 - position, mark))
    interned: dict = {}

    def intern(key) -> int:
        return interned.setdefault(key, len(interned))

    current = [intern((n, tuple(f))) for n, f in zip(numbers, fixed)]
    for _ in range(rounds):
        current = [
            intern(
                (
                    current[i],
                    tuple((p, out, current[j]) for p, j, out in operands[i]),
                    # A set: the number of readers of one kind must not distinguish layers.
                    tuple(sorted({(out, p, current[j]) for out, p, j in consumers[i]})),
                )
            )
            for i in range(len(numbers))
        ]
    return current
