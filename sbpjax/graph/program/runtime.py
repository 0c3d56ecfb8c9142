"""Runtime state of a graph: its compiled signatures, saved and compiled again; graphs that share programs.

A compiled program belongs to one machine and one version of the compiler, so only its signature is saved: the facts of
the arguments. Loading compiles for them again, before data is there; with the persistent compilation cache
(``JAX_COMPILATION_CACHE_DIR``) that is a look-up.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.signature import TensorSpec
from sbpjax.errors import GraphError, GraphTypeError, StateDictError

NAME, CALLS, EAGER = "oneflow_graph_name", "graph.calls", "graph.state"


def runtime_state_dict(graph: Any, destination: dict | None, with_eager: bool) -> dict[str, Any]:
    """Return the arguments that a graph has programs for; see `Graph.runtime_state_dict`."""
    found: dict[str, Any] = {} if destination is None else destination
    found[NAME] = graph.name
    found[CALLS] = [call for call in (getattr(p, "arguments", None) for p in graph._g.programs.values()) if call]
    if with_eager:
        found[EAGER] = graph.state_dict()
    return found


def load_runtime_state_dict(graph: Any, state: dict[str, Any], warmup_with_run: bool) -> None:
    """Compile for the signatures of another graph; see `Graph.load_runtime_state_dict`."""
    if not isinstance(state, dict) or CALLS not in state:
        raise StateDictError(
            f"{graph.name}.load_runtime_state_dict",
            f"keys {sorted(state)}" if isinstance(state, dict) else f"a {type(state).__name__}",
            f"a runtime state has the key {CALLS!r}",
            "load the result of graph.runtime_state_dict()",
        )
    if EAGER in state:
        graph.load_state_dict(state[EAGER])
    for args, kwargs in state[CALLS]:
        graph.build_graph(*args, **kwargs)
        if warmup_with_run:
            graph.finish_compile_and_init_runtime()


def runtime_state_dict_to(state: dict[str, Any], device: Any) -> dict[str, Any]:
    """Return a runtime state with its local tensors moved to a device."""
    leaves, structure = tree.flatten(state)
    moved = [x.to(device) if isinstance(x, Tensor) and x.is_local else x for x in leaves]
    return tree.unflatten(structure, moved)


def arguments_of(leaves: list, structure: Any) -> tuple[tuple, dict]:
    """Return the arguments of a call without their data."""
    specs = [
        TensorSpec(
            x.shape,
            x.dtype,
            placement=None if x.layout is None else x.layout.placement,
            sbp=None if x.layout is None else x.layout.sbp,
            requires_grad=x.requires_grad,
        )
        if isinstance(x, Tensor)
        else x
        for x in leaves
    ]
    return tree.unflatten(structure, specs)


def share(graph: Any, other: Any) -> None:
    """Let a graph use the programs of another one; see `Graph.share_from`."""
    operation = f"{graph.name}.share_from"
    if not hasattr(other, "_g"):
        raise GraphTypeError(operation, f"a {type(other).__name__}", "programs are shared by graphs", "a Graph")
    mine, theirs = graph._g, other._g
    same = type(graph) is type(other) and mine.blocks.keys() == theirs.blocks.keys()
    same = same and all(module is theirs.blocks[name] for name, module in mine.blocks.items())
    same = same and [e.optimizer for e in mine.optimizers] == [e.optimizer for e in theirs.optimizers]
    if not same or mine.scaler is not theirs.scaler:
        raise GraphError(
            operation,
            f"{graph.name} and {other.name}",
            "graphs that share programs are of one class and have the same modules, optimizers and loss scaler",
            "make both from the same modules; modules alone are shared by any graphs without this call",
        )
    # The same table, not a copy: programs that either compiles from now on serve both.
    mine.programs = theirs.programs
    mine.latest, mine.last = theirs.latest, None
