"""State tensors of a parameter: made on its first step, laid out anew after the parameter was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.dtype import float32
from sbpjax._core.tensor.storage.version_counter import States
from sbpjax.optim import run
from sbpjax.optim.rules import MASTER

if TYPE_CHECKING:
    from sbpjax.optim.optimizer import Optimizer


def prepare_state(
    optimizer: Optimizer, param: Tensor, index: int, place: Any, new_steps: dict[Any, Tensor]
) -> dict[str, Tensor]:
    """Return the parameter's state, made on its first step, and laid out anew after the parameter was."""
    state = optimizer.state[param]
    group = optimizer.param_groups[index]
    names = optimizer._states_of(param, group)
    layout = place if param.layout is None else param.layout
    if optimizer._laid.get(param) is layout and MASTER not in state and "master_weights" not in group:
        for name in names:
            if name not in state:
                break
        else:
            if "step" in state:
                return state
    if "step" not in state:
        if (place, index) not in new_steps:
            new_steps[place, index] = run.new_step(param, 0)
        state["step"] = new_steps[place, index]
    elif not run.has_same_placement(state["step"], param):
        key = (place, index, id(state["step"]))
        if key not in new_steps:
            new_steps[key] = run.new_step(param, 0 if state["step"].is_meta else int(state["step"].item()))
        state["step"] = new_steps[key]
    dtype = param.dtype
    if group.get("master_weights") and run.is_low(dtype):
        dtype = float32
        if MASTER not in state:
            state[MASTER] = run.master_of(param)
    elif MASTER in state:
        del state[MASTER]
    moved = place is not run.TRACE and optimizer._laid.get(param) != layout
    for name in (*names, MASTER) if MASTER in state else names:
        shape = optimizer._shape(name, param)
        if name not in state:
            value = optimizer._initial(name, group)
            state[name] = run.full_like(param, value, dtype) if shape is None else run.full(param, shape, value)
            continue
        if shape is not None:
            if not run.has_same_placement(state[name], param):
                state[name] = run.broadcast_like(state[name], param)
            continue
        if not run.has_same_layout(state[name], param) and (moved or not run.has_same_placement(state[name], param)):
            state[name] = run.lay_out_like(state[name], param)
        if dtype is not param.dtype and state[name].dtype != dtype:
            state[name] = state[name].to(dtype)
    if moved:
        optimizer._laid[param] = layout
    return state


def give_own_steps(states: States, places: Iterable[dict[Any, list[Tensor]]]) -> None:
    """Split shared step counts, so that every bucket has its own."""
    users: dict[int, int] = {}
    for state in states.values():
        if "step" in state:
            users[id(state["step"])] = users.get(id(state["step"]), 0) + 1
    for buckets in places:
        for params in buckets.values():
            shared = states[params[0]]["step"]
            count = sum(states[param]["step"] is shared for param in params)
            if users[id(shared)] > count:
                users[id(shared)] -= count
                own = shared.clone()
                for param in params:
                    states[param]["step"] = own
