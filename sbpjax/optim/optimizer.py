"""`Optimizer`: PyTorch's interface over one compiled update for the whole list of parameters.

    optimizer = optim.AdamW(model.parameters(), lr=3e-4)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

State is laid out like its parameter: Adam's two moments of an ``S0`` weight are ``S0``, those of a replicated one are
replicated. `step` runs one program per placement, in which a partial-sum gradient is reduced into the parameter's
layout.

Parameters that were always stepped together share one step count, a 0-d tensor; one that misses a step gets its own.
"""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from sbpjax.autograd import enable_grad, no_grad
from sbpjax.autograd.node import RemovableHandle
from sbpjax.optim import run
from sbpjax.optim.check import is_on, params_type, params_value
from sbpjax.optim.rules import Bucket
from sbpjax.tensor import Tensor
from sbpjax.tensor.mode import mode


class Optimizer:
    """Base of the optimizers; a subclass says its hyperparameters, flags, state and rule.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        defaults: the options of groups that do not give theirs.
    """

    hyper: ClassVar[tuple[str, ...]] = ("lr",)
    _dynamic: ClassVar[tuple[str, ...]] = ("lr",)
    _rule: Callable  # a staticmethod: the pure update rule of `sbpjax.optim.rules`

    def __init__(self, params: Iterable, defaults: dict[str, Any]):
        if isinstance(params, Tensor):
            rule = "params argument given to the optimizer should be an iterable of Tensors or dicts"
            raise params_type(params, rule)
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._step_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Callable] = OrderedDict()
        groups = list(params)
        if not groups:
            raise params_value("no parameter", "optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # -- what a subclass says --------------------------------------------------------------------------------------

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """Return the numbers of `hyper` for a group; they are inputs of the compiled update."""
        return tuple(group[name] for name in self.hyper)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of the state tensors per parameter."""
        raise NotImplementedError

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        """Return what chooses the formula; part of the compiled update's key."""
        raise NotImplementedError

    # -- groups ----------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, e.g. when a frozen layer joins the training."""
        if not isinstance(param_group, dict):
            raise params_type(param_group, "param_group must be a dict")
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, set):
            rule = "optimizer parameters need to be organized in ordered collections; a set has no order"
            raise params_type(params, rule)
        group["params"] = params = [params] if isinstance(params, Tensor) else list(params)
        for param in params:
            if not isinstance(param, Tensor):
                rule = f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}"
                raise params_type(param, rule)
            if not param.is_leaf:
                seen = f"{param.dtype.name}{list(param.shape)} with grad_fn={param.grad_fn!r}"
                raise params_value(seen, "can't optimize a non-leaf Tensor", "x.detach().requires_grad_()")
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self._check(group)
        if len({id(p) for p in params}) != len(params):
            warnings.warn("optimizer contains a parameter group with duplicate parameters", stacklevel=3)
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in taken for p in params):
            rule = "some parameters appear in more than one parameter group"
            raise params_value("a parameter of an earlier group", rule)
        self.param_groups.append(group)

    def _check(self, group: dict[str, Any]) -> None:
        """Raise a ValueError for an option out of its range."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop all gradients, or set them to zero."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    param.grad = None if set_to_none else param.grad.detach() * 0

    # -- the step --------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: computes the loss anew and calls backward; its result is returned.
        """
        if mode.touch is not None:
            mode.touch(self)
        for hook in list(self._step_pre_hooks.values()):
            hook(self, (closure,), {})
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            self._update()
        for hook in list(self._step_post_hooks.values()):
            hook(self, (closure,), {})
        return loss

    def _update(self) -> None:
        places: dict[Any, dict[tuple[int, int], list[Tensor]]] = {}
        new_steps: dict[Any, Tensor] = {}
        updated = [(i, p) for i, group in enumerate(self.param_groups) for p in group["params"] if p.grad is not None]
        for index, param in updated:
            place = run.place_of(param)
            step = self._ready(param, index, place, new_steps)["step"]
            places.setdefault(place, {}).setdefault((index, id(step)), []).append(param)
        if run.TRACE not in places:
            self._give_own_steps(places)
        for buckets in places.values():
            self._run(list(buckets.items()))

    def _run(self, buckets: list[tuple[tuple[int, int], list[Tensor]]]) -> None:
        specs, jobs = [], []
        for (index, _), params in buckets:
            group = self.param_groups[index]
            names = self._states(group)
            specs.append(Bucket(self._rule, self._flags(group), self.hyper, names, len(params)))
            states = [[self.state[p][name] for p in params] for name in names]
            jobs.append(run.Job(self._numbers(group), self.state[params[0]]["step"], params, states))
        run.update_in_place(tuple(specs), jobs)

    def _ready(self, param: Tensor, index: int, place: Any, new_steps: dict) -> dict[str, Tensor]:
        """Return the parameter's state, made on its first step, and laid out like the parameter as it is now."""
        state = self.state[param]
        if "step" not in state:
            if (place, index) not in new_steps:
                new_steps[place, index] = run.new_step(param, 0)
            state["step"] = new_steps[place, index]
        elif not run.same_place(state["step"], param):
            key = (place, index, id(state["step"]))
            if key not in new_steps:
                new_steps[key] = run.new_step(param, int(state["step"].item()))
            state["step"] = new_steps[key]
        for name in self._states(self.param_groups[index]):
            if name not in state:
                state[name] = run.zeros_like(param)
            elif not run.laid_out_alike(state[name], param):
                state[name] = run.lay_out_like(state[name], param)
        return state

    def _give_own_steps(self, places: dict[Any, dict[tuple[int, int], list[Tensor]]]) -> None:
        """Make every bucket the only user of its step count, where some parameters or groups share one."""
        users: dict[int, int] = {}
        for state in self.state.values():
            if "step" in state:
                users[id(state["step"])] = users.get(id(state["step"]), 0) + 1
        for buckets in places.values():
            for (_, step_id), params in buckets.items():
                if users[step_id] > len(params):
                    users[step_id] -= len(params)
                    own = self.state[params[0]]["step"].clone()
                    for param in params:
                        self.state[param]["step"] = own

    # -- state -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return ``{"state": {number: tensors}, "param_groups": [options]}`` with parameters numbered in order."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            options = {k: v for k, v in group.items() if k != "params"}
            groups.append(options | {"params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(param)]: dict(tensors) for param, tensors in self.state.items() if id(param) in numbers}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the options and state that `state_dict` returned; layouts follow the parameters at the next step.

        Raises:
            ValueError: the number of groups, or of parameters in one, differs.
        """
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, loaded in zip(self.param_groups, saved):
            if len(group["params"]) != len(loaded["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
        state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)
        steps: dict[Any, Tensor] = {}
        for group, loaded in zip(self.param_groups, saved):
            for param, number in zip(group["params"], loaded["params"]):
                for name, value in state_dict["state"].get(number, {}).items():
                    state[param][name] = _loaded(name, value, param, steps)
        self.state = state
        self.param_groups = [
            {"params": group["params"]} | {k: copy.deepcopy(v) for k, v in loaded.items() if k != "params"}
            for group, loaded in zip(self.param_groups, saved)
        ]

    # -- for compiled programs -------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the state of every parameter that records gradients now, rather than in its first step.

        In a traced step all parameters of a group share one step count, also those that have no gradient there.
        """
        with no_grad():
            new_steps: dict[Any, Tensor] = {}
            for index, group in enumerate(self.param_groups):
                for param in group["params"]:
                    if param.requires_grad:
                        self._ready(param, index, run.place_of(param), new_steps)

    def state_tensors(self) -> list[Tensor]:
        """Return every tensor of the state once, in a fixed order."""
        tensors = [
            state[name]
            for group in self.param_groups
            for state in (self.state.get(param, {}) for param in group["params"])
            for name in sorted(state)
            if isinstance(state[name], Tensor)
        ]
        return list({id(t): t for t in tensors}.values())

    def dynamic_options(self) -> list[tuple[dict[str, Any], str]]:
        """Return (group, name) of every option that a schedule may change without a new compilation."""
        return [(group, name) for group in self.param_groups for name in self._dynamic_names(group)]

    def _dynamic_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        # An option at zero switches a part of the formula off; the learning rate alone stays a number even then.
        return tuple(name for name in self._dynamic if name == "lr" or is_on(group[name]))

    def static_options(self) -> tuple:
        """Return what else a program traced on this optimizer depends on; hashable."""
        dynamic = [self._dynamic_names(group) for group in self.param_groups]
        fixed = [
            tuple((k, v) for k, v in sorted(group.items()) if k not in ("params", "initial_lr", *names))
            for group, names in zip(self.param_groups, dynamic)
        ]
        return type(self), tuple(dynamic), tuple(fixed)

    # -- hooks and text --------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before every step."""
        return RemovableHandle(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after every step."""
        return RemovableHandle(self._step_post_hooks, hook)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for index, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {index}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _loaded(name: str, value: Any, param: Tensor, steps: dict[Any, Tensor]) -> Any:
    """Return a state entry for `param`; parameters of equal step counts share one."""
    if name == "step":
        count = int(value.item() if isinstance(value, Tensor) else value)
        key = (run.place_of(param), count)
        if key not in steps:
            steps[key] = run.new_step(param, count)
        return steps[key]
    if isinstance(value, Tensor):
        with no_grad():
            return run.lay_out_like(value.detach().clone(), param)
    return copy.deepcopy(value)
