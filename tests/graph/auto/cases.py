"""Small steps as subjects of auto parallelism, planned once; the tests of the room share them."""

from __future__ import annotations

import functools

import numpy as np

from sbpjax._core.inspect.auto.report import Report, report
from sbpjax.graph.auto.planning_problem import PlanningProblem, planning_problem_of
from sbpjax.sbp.placement import placement
from tests import models_jax

KINDS = {"p": "parameter", "m": "state", "v": "state", "x": "batch", "count": "number"}
STEPS = {
    "deep": lambda: models_jax.mlp(1024, 32, 32, layers=4),  # equal layers, best as data parallelism
    "mlp": lambda: models_jax.mlp(64, 32, 64, layers=4),
    "gpt": lambda: models_jax.gpt(2, 8, 16, 32, 8, 64),
    "wide": lambda: models_jax.wide_deep(4000, 32, 26, 64, 32),
}


def line() -> placement:
    """Return 8 devices in a line."""
    return placement("cpu", np.arange(8))


def grid() -> placement:
    """Return 2 × 4 devices."""
    return placement("cpu", np.arange(8).reshape(2, 4))


def problem(step: models_jax.Step, p: placement, **options) -> PlanningProblem:
    """Return the subject of a step of `models_jax`."""
    kinds = [KINDS[n.partition(".")[0]] for n in step.names]
    return planning_problem_of(step.fn, step.avals, p, names=step.names, kinds=kinds, returned=step.state, **options)


@functools.cache
def on_a_line(model: str) -> PlanningProblem:
    """Return a small model's step on 8 devices."""
    return problem(STEPS[model](), line(), title=model)


@functools.cache
def reported(model: str) -> Report:
    """Return the report of a small model's step on 8 devices, beside two strategies and the layouts it came with."""
    return report(on_a_line(model), against=["dp", "tp", "own"])
