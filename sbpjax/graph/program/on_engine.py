"""Inference engines: conditions on a graph's program, and the inputs that become constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.export

from sbpjax._core.engines import Engine, EngineProgram
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax.errors import EngineError

if TYPE_CHECKING:
    from .program import Program


def on_engine(program: Program, engine: Engine) -> EngineProgram:
    """Return the runner of a program on an engine.

    Args:
        program: it only computes, on one device.
        engine: which one, and how.

    Raises:
        EngineError: it does more than compute, or the engine is not there.
    """
    check(program, engine)
    exported = exported_of(program) if program.exported is None else program.exported
    operation = operation_name(program, engine)
    return EngineProgram(operation, exported, weights_of(program), engine, program.call)


def operation_name(program: Program, engine: Engine) -> str:
    """Return the user's request, for messages."""
    name = program.operation.removesuffix(".build").removesuffix(", loaded")
    switch = {"xla": "enable_constant_weights"}.get(engine.name, f"enable_{engine.name}")
    return f"{name}(...), with {switch}(True)"


@hide_mesh
def exported_of(program: Program) -> Any:
    """Return a local program in the form of `jax.export`."""
    structs = [jax.ShapeDtypeStruct(s.shape, s.dtype, weak_type=s.weak_type) for s in program.structs]
    return jax.export.export(program.call, platforms=("cpu",))(*structs)


def weights_of(program: Program) -> list[int]:
    """Return the inputs of a program that never change: an unused seed, the state, captured tensors."""
    count = len(program.structs)
    first = 1 + len(program.slots)
    return [*range(first), *range(count - len(program.captured), count)]


def check(program: Program, engine: Engine) -> None:
    """Raise unless a program only computes, on one device.

    Raises:
        EngineError: it does not.
    """
    written = [f"state input {i}" for i in program.written]
    seen = fix = ""
    if program.placement is not None:
        seen, fix = f"a graph on {program.placement!r}", "tensors and modules that are local"
    elif written or program.number_names:
        many = f"{len(written)} tensors of the state"
        seen = f"a graph that writes {many}" if written else "a graph with an optimizer"
        fix = "a graph without optimizer, of model.eval(): batch norms in training write their statistics"
    elif program.is_random:
        seen, fix = "a graph that draws random numbers", "model.eval(), so that dropout draws none"
    elif program.pipeline is not None:
        seen, fix = "a pipeline", "a model on one device"
    if seen:
        rule = f"{engine.name} gets a graph that computes results from its inputs and constant weights, on one device"
        raise EngineError(operation_name(program, engine), seen, rule, fix)
