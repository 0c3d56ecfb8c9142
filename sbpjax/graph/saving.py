"""A graph's state as one dict, and back: modules, optimizers, schedules, loss scaler, random stream.

    {"model": {"0.weight": …}, "graph.optimizers": [{…}], "graph.lr_schedulers": [{…}], "graph.rng": tensor([seed, n])}

Keys with a dot cannot be attributes, so they never meet the name of a module. Loading is all or nothing: the old state
is put back if any part does not fit.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.storage.payload import payload, put
from sbpjax.errors import SbpjaxError, StateDictError

OPTIMIZERS, SCHEDULES, SCALER, RNG = "graph.optimizers", "graph.lr_schedulers", "graph.grad_scaler", "graph.rng"


def state_dict(graph: Any, destination: dict | None = None) -> dict[str, Any]:
    """Collect the state of a graph; see `Graph.state_dict`."""
    own = graph._g
    found: dict[str, Any] = OrderedDict() if destination is None else destination
    for name, module in own.blocks.items():
        found[name] = module.state_dict(keep_vars=False)
    found[OPTIMIZERS] = [entry.optimizer.state_dict() for entry in own.optimizers]
    found[SCHEDULES] = [None if e.scheduler is None else e.scheduler.state_dict() for e in own.optimizers]
    if own.scaler is not None:
        found[SCALER] = own.scaler.state_dict()
    found[RNG] = default_generator.get_state()
    return found


def load_state_dict(graph: Any, state: dict[str, Any], strict: bool) -> None:
    """Load the state of a graph; see `Graph.load_state_dict`."""
    own = graph._g
    operation = f"{graph.name}.load_state_dict"
    if not isinstance(state, dict):
        raise _rejection_error(operation, f"a {type(state).__name__}", "a state is a dict, as state_dict() returns it")
    known = [*own.blocks, OPTIMIZERS, SCHEDULES, RNG] + ([SCALER] if own.scaler is not None else [])
    unknown, missing = [k for k in state if k not in known], [k for k in known if k not in state]
    if strict and (unknown or missing):
        rule = f"the keys are those of the graph: {known}"
        raise _rejection_error(operation, f"unknown keys {unknown}, missing keys {missing}", rule)
    for key in (OPTIMIZERS, SCHEDULES):
        if key in state and len(state[key]) != len(own.optimizers):
            rule = f"the graph has {len(own.optimizers)} optimizers"
            raise _rejection_error(operation, f"{len(state[key])} entries in {key!r}", rule)
    undo = _snapshot(graph)
    try:
        _load(own, state, strict)
    # Ctrl-C as well: half a loaded state is no trained model.
    except BaseException as error:
        undo()
        if isinstance(error, (SbpjaxError, ValueError, KeyError, TypeError, RuntimeError)):
            if isinstance(error, StateDictError):
                raise
            raise _rejection_error(operation, f"a state that does not fit: {error}", "nothing was loaded") from error
        raise


def _load(own: Any, state: dict[str, Any], strict: bool) -> None:
    for name, module in own.blocks.items():
        if name in state:
            module.load_state_dict(state[name], strict=strict)
    for entry, saved in zip(own.optimizers, state.get(OPTIMIZERS, ())):
        entry.optimizer.load_state_dict(saved)
    # after the optimizers: a schedule writes its rates into the groups, which hold the user's later settings
    for entry, saved in zip(own.optimizers, state.get(SCHEDULES, ())):
        if entry.scheduler is not None and saved is not None:
            rates = [group["lr"] for group in entry.optimizer.param_groups]
            entry.scheduler.load_state_dict(saved)
            for group, rate in zip(entry.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
    if own.scaler is not None and SCALER in state:
        own.scaler.load_state_dict(state[SCALER])
    if RNG in state:
        default_generator.set_state(state[RNG])


def _snapshot(graph: Any) -> Any:
    """Return a function that puts everything back as it is now."""
    own = graph._g
    tensors = [t for m in own.blocks.values() for t in (*m.parameters(), *m.buffers())]
    if own.scaler is not None:
        tensors += own.scaler.state_tensors()
    # References are enough: arrays are immutable, and nothing here donates.
    arrays = [(t, payload(t), t.layout) for t in tensors]
    optimizers = [
        (e.optimizer, {p: dict(s) for p, s in e.optimizer.state.items()}, [dict(g) for g in e.optimizer.param_groups])
        for e in own.optimizers
    ]
    schedules = [(e.scheduler, copy.copy(e.scheduler.__dict__)) for e in own.optimizers if e.scheduler is not None]
    generator = default_generator._seed, default_generator._counter

    def undo() -> None:
        for t, array, layout in arrays:
            if payload(t) is not array:
                put(t, array, layout)
        for optimizer, tensors_of, groups in optimizers:
            optimizer.state.clear()
            optimizer.state.update(tensors_of)
            optimizer.param_groups[:] = groups
        for schedule, fields in schedules:
            schedule.__dict__.clear()
            schedule.__dict__.update(fields)
        default_generator._seed, default_generator._counter = generator

    return undo


def _rejection_error(operation: str, seen: str, rule: str) -> StateDictError:
    return StateDictError(operation, seen, rule, "load the state_dict() of a graph of the same parts")
