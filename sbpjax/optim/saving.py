"""State dicts of optimizers: packing, and unpacking after a check of the whole state.

    {"state": {0: {"step": 3, "exp_avg": ...}, 1: ...}, "param_groups": [{"lr": 0.1, ..., "params": [0, 1]}]}

Parameters are numbered in order over all groups, as in PyTorch, and the states have PyTorch's names, so a state saved
by PyTorch loads too. A loaded tensor gets the layout of the state that it replaces, or of its parameter.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.storage.version_counter import Fields, States
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import OpValueError
from sbpjax.optim import run
from sbpjax.optim.rules import MASTER

# Options of a group that may be absent or are PyTorch's own choices of an implementation.
_OPTIONAL = {"params", "initial_lr", "clip_grad_max_norm", "clip_grad_norm_type", "is_sparse", "master_weights"}
_OPTIONAL |= {"foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay", "param_names"}


def pack(optimizer: Any) -> dict[str, Any]:
    """Return the options of all groups and the state of all parameters."""
    numbers: dict[int, int] = {}
    groups = []
    for group in optimizer.param_groups:
        for param in group["params"]:
            numbers.setdefault(id(param), len(numbers))
        options = {k: v for k, v in group.items() if k != "params"}
        groups.append(options | {"params": [numbers[id(p)] for p in group["params"]]})
    state = {numbers[id(p)]: dict(tensors) for p, tensors in optimizer.state.items() if id(p) in numbers}
    if not optimizer._counts_steps:
        for tensors in state.values():
            tensors.pop("step", None)
        state = {number: tensors for number, tensors in state.items() if tensors}
    return {"state": state, "param_groups": groups}


def check(optimizer: Any, state_dict: dict[str, Any]) -> None:
    """Raise a ValueError for a state that is not one of this optimizer: groups, options, names and shapes."""
    unknown = sorted(set(state_dict) ^ {"state", "param_groups"})
    if unknown:
        raise _rejection_error(
            optimizer, f"keys {sorted(state_dict)}", "a state has the keys 'state' and 'param_groups'"
        )
    groups, saved = optimizer.param_groups, state_dict["param_groups"]
    if len(saved) != len(groups):
        rule = "loaded state dict has a different number of parameter groups"
        raise _rejection_error(optimizer, f"{len(saved)} groups", f"{rule} than the optimizer's {len(groups)}")
    owners: dict[int, tuple[dict, Tensor]] = {}
    for index, (group, loaded) in enumerate(zip(groups, saved)):
        if len(group["params"]) != len(loaded["params"]):
            rule = "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            seen = f"{len(loaded['params'])} parameters in group {index}"
            raise _rejection_error(optimizer, seen, f"{rule}, {len(group['params'])}")
        foreign = sorted(set(loaded) - set(group) - set(optimizer.defaults) - _OPTIONAL)
        if foreign:
            rule = f"{type(optimizer).__name__} has no option {foreign[0]!r}; it has {sorted(optimizer.defaults)}"
            raise _rejection_error(optimizer, f"options {foreign} in group {index}", rule)
        options = {**group, **loaded, "params": group["params"]}
        optimizer._check(options)
        owners |= {number: (options, p) for number, p in zip(loaded["params"], group["params"])}
    for number, tensors in state_dict["state"].items():
        if number not in owners:
            rule = f"the groups have parameters 0 to {len(owners) - 1}"
            raise _rejection_error(optimizer, f"state of parameter {number!r}", rule)
        _check_entries(optimizer, number, tensors, *owners[number])


def _check_entries(optimizer: Any, number: int, tensors: dict[str, Any], group: dict, param: Tensor) -> None:
    known = {"step", MASTER, *optimizer._states_of(param, group)}
    for name, value in tensors.items():
        if name not in known:
            rule = f"{type(optimizer).__name__} keeps {sorted(known)} per parameter"
            raise _rejection_error(optimizer, f"state {name!r} of parameter {number}", rule)
        if value is None:  # a buffer that PyTorch has not made yet
            continue
        own = () if name == "step" else optimizer._shape(name, param)
        shape = tuple(param.shape) if own is None else own
        seen = tuple(getattr(value, "shape", ()))
        if seen != shape and (name != "step" or seen != (1,)):
            rule = f"it must have the shape {list(shape)}" + ("" if own is not None else " of its parameter")
            raise _rejection_error(optimizer, f"state {name!r} of parameter {number} of shape {list(seen)}", rule)


def unpack(optimizer: Any, state_dict: dict[str, Any]) -> tuple[States, list[dict[str, Any]]]:
    """Return the state, and the options of each group, that a checked `state_dict` makes for an optimizer."""
    state = States(Fields)
    steps: dict[Any, Tensor] = {}
    options = []
    for group, loaded in zip(optimizer.param_groups, state_dict["param_groups"]):
        steps.clear()  # as in a fresh state, whose compiled programs a resumed run then finds in the cache
        for param, number in zip(group["params"], loaded["params"]):
            present = optimizer.state.get(param, {})
            entries = state_dict["state"].get(number, {})
            for name, value in ((n, v) for n, v in entries.items() if v is not None):
                state[param][name] = _load_entry(optimizer, name, value, param, present.get(name), steps)
        options.append({k: copy.deepcopy(v) for k, v in loaded.items() if k != "params"})
    return state, options


def _load_entry(optimizer: Any, name: str, value: Any, param: Tensor, present: Any, steps: dict[Any, Tensor]) -> Any:
    """Return a state entry for `param`; parameters of a group with equal step counts share one."""
    if name == "step":
        count = int(value.item() if hasattr(value, "item") else value)
        key = (run.place_of(param), count)
        if key not in steps:
            steps[key] = run.new_step(param, count)
        return steps[key]
    if not isinstance(value, Tensor) and hasattr(value, "__array__"):  # NumPy's or PyTorch's
        value = from_data.tensor(np.asarray(value))
    if isinstance(value, Tensor):
        like = present if isinstance(present, Tensor) and run.has_same_placement(present, param) else param
        with no_grad():
            if optimizer._shape(name, param) is not None:
                return run.broadcast_like(value.detach().clone().to(run.statistics_dtype(param)), param)
            return run.lay_out_like(value.detach().clone(), like)
    return copy.deepcopy(value)


def _rejection_error(optimizer: Any, seen: str, rule: str) -> OpValueError:
    operation = f"{type(optimizer).__name__}.load_state_dict"
    return OpValueError(operation, seen, rule, "load the state_dict() of an optimizer made alike")
