"""Baseline strategies for any step, as pins: data parallel, ZeRO, FSDP, tensor parallel.

    dp       the batch is split, everything else is whole
    zero1    the same, and the optimizer's state is divided
    fsdp     the same, and the parameters too
    tp       Megatron's rule: matrices by columns and by rows in turn (`_core.inspect.auto.megatron`)
    dp+tp    on a 2-D placement: the first on its first axis, the second on the other

On one axis of eight ranks, Adam on ``w (1024, 4096)``, batch ``x (32, 1024)``:

            x    w    state of w
    dp      S0   B    B
    zero1   S0   B    S0
    fsdp    S0   S0   S0
    tp      B    S1   S1

`report` shows them beside the plan that was found. Only evenly divisible dims are split, and layouts that the user gave
are ignored: each is the cost of the step if all of it were laid out so.
"""

from __future__ import annotations

import math

from sbpjax._core.programs.plan import Codes
from sbpjax.errors import SbpError
from sbpjax.graph.auto.planning_problem import BATCH, NUMBER, PARAMETER, STATE, Input, PlanningProblem
from sbpjax.sbp.algebra import B

from .megatron import TensorParallel

DATA = ("dp", "zero1", "fsdp")
TITLES = {"dp": "data parallel", "zero1": "ZeRO-1", "fsdp": "FSDP", "tp": "tensor parallel"}


def strategies(problem: PlanningProblem) -> list[str]:
    """Return the strategies of a placement's number of axes: each on all axes, and on several axes their products."""
    axes = len(problem.sizes)
    names = [*DATA, "tp"]
    return names if axes == 1 else [*names, *("+".join([name] * (axes - 1) + ["tp"]) for name in DATA)]


def title(strategy: str) -> str:
    """Return a strategy's name in words."""
    return " × ".join(TITLES.get(part, part) for part in strategy.split("+"))


def hand_pins(problem: PlanningProblem, strategy: str) -> dict[int, Codes]:
    """Return the nd-sbp of every input under a strategy.

    Args:
        problem: the step.
        strategy: ``dp``, ``zero1``, ``fsdp``, ``tp``; on several axes one for all of them, or one per axis: ``dp+tp``.
    """
    sizes = problem.sizes
    parts = strategy.split("+")
    parts = parts * len(sizes) if len(parts) == 1 else parts
    if len(parts) != len(sizes) or any(p not in TITLES for p in parts):
        raise SbpError(
            f"strategy {strategy!r}",
            f"a placement of hierarchy {sizes}",
            f"a strategy is one of {list(TITLES)}, or one per axis joined by +",
            f'e.g. "{strategies(problem)[-1]}"',
        )
    codes = {i: [B] * len(sizes) for i in range(len(problem.inputs))}
    for axis, part in enumerate(parts):
        if part == "tp":
            _split_tensors(problem, axis, codes)
    for axis, part in enumerate(parts):
        if part != "tp":
            _split_data(problem, axis, part, codes)
    return {i: problem.inputs[i].own if problem.inputs[i].kind == NUMBER else tuple(c) for i, c in codes.items()}


def _split_tensors(problem: PlanningProblem, axis: int, codes: dict[int, list[int]]) -> None:
    parameters = [i for i, x in enumerate(problem.inputs) if x.kind == PARAMETER]
    found = TensorParallel(problem.program, parameters, problem.sizes[axis]).codes
    for i, x in enumerate(problem.inputs):
        owner = i if x.kind == PARAMETER else x.parent if x.kind == STATE else None
        if owner is not None and x.shape == problem.inputs[owner].shape:
            code = found[owner]
            if code >= 0 and _divides(problem, x.shape, codes[i], axis, code):
                codes[i][axis] = code


def _split_data(problem: PlanningProblem, axis: int, part: str, codes: dict[int, list[int]]) -> None:
    for i, x in enumerate(problem.inputs):
        if x.kind == BATCH:
            dims = [0] if x.shape else []
        elif x.kind == STATE and part in ("zero1", "fsdp") or x.kind == PARAMETER and part == "fsdp":
            dims = _dims(x, codes[i], axis)
        else:
            dims = []
        dim = next((d for d in dims if _divides(problem, x.shape, codes[i], axis, d)), None)
        if dim is not None:
            codes[i][axis] = dim


def _dims(x: Input, codes: list[int], axis: int) -> list[int]:
    """Return the dims in the order in which they are tried: those that no tensor axis has split come first."""
    return sorted(range(bool(x.members), len(x.shape)), key=lambda d: (d in codes[axis + 1 :], d))


def _divides(problem: PlanningProblem, shape, codes: list[int], axis: int, dim: int) -> bool:
    """Return whether a dim divides evenly over an axis and the others that split it."""
    ranks = math.prod(n for a, (n, c) in enumerate(zip(problem.sizes, codes, strict=True)) if c == dim or a == axis)
    return shape[dim] % ranks == 0 and shape[dim] >= ranks
