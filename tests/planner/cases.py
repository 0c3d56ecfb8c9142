"""Small steps compiled once per strategy, and what they give on one device; the planner's tests share them."""

from __future__ import annotations

import dataclasses
import functools

import jax
import numpy as np

from sbpjax._core.compiler.compile import CompiledProgram, compile_program
from sbpjax._core.compiler.conversions import from_logical, to_logical
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement
from tests import models_jax


def mesh_of(strategy: str) -> placement:
    """Return 8 devices in a line, or as 2 × 4 for a strategy of two axes."""
    return placement("cpu", np.arange(8).reshape((2, 4) if "+" in strategy else (8,)))


def everywhere(p: placement) -> str:
    """Return the all-broadcast nd-sbp of a placement."""
    return ",".join("B" * len(p.hierarchy))


@dataclasses.dataclass
class Case:
    """A step compiled for a strategy."""

    step: models_jax.Step
    placement: placement
    layouts: list
    compiled: CompiledProgram


@functools.cache
def compiled(model: str, strategy: str, lowering: str = "spmd") -> Case:
    """Return a small model's Adam step compiled for a strategy; tests share it."""
    step = STEPS[model]()
    p = mesh_of(strategy)
    layouts = [layout_of(p, c, a.shape, np.dtype(a.dtype)) for c, a in zip(models_jax.pins(step, strategy), step.avals)]
    pins = [*range(step.state), everywhere(p)]
    return Case(step, p, layouts, compile_program(step.fn, p, layouts, pins, lowering=lowering))


STEPS = {
    "mlp": lambda: models_jax.mlp(64, 32, 64),
    "deep": lambda: models_jax.mlp(128, 32, 32, layers=8),  # its layers are tied
    "wide": lambda: models_jax.mlp(1024, 32, 64),  # its batch is larger than its parameters
    "gpt": lambda: models_jax.gpt(1, 8, 16, 32, 8, 64),
}


@functools.cache
def reference(model: str) -> tuple:
    """Return example inputs of a model and the outputs on one device."""
    step = STEPS[model]()
    values = step.values()
    return values, [np.asarray(x) for x in jax.jit(step.fn)(*values)]


def run(program: CompiledProgram, values) -> list[np.ndarray]:
    """Run a compiled program on logical values and return logical values."""
    arrays = [from_logical(v, x.placement, x.sbp)[0] for v, x in zip(values, program.in_layouts, strict=True)]
    outputs = program.call(*arrays)
    return [np.asarray(to_logical(y, x)) for y, x in zip(outputs, program.out_layouts, strict=True)]
