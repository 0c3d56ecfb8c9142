"""`Optimizer`: base class with PyTorch's interface; one compiled update for the whole list of parameters.

    optimizer = optim.AdamW(model.parameters(), lr=3e-4)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

State is laid out like its parameter: Adam's two moments of an ``S0`` weight are ``S0``, those of a replicated one are
replicated. `step` runs one program per placement, in which a partial-sum gradient is reduced into the parameter's
layout. A state tensor that is laid out anew on the same placement (to keep 1/n of it per device) stays so until the
parameter itself is laid out anew.

Parameters that were always stepped together share one step count, a 0-d tensor; one that misses a step gets its own.
"""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from sbpjax._core.compiler.eager.background_compile import enable_backward_compile
from sbpjax._core.functions.table.public import add_oneflow_arguments
from sbpjax._core.functions.table.texts import FamilyDocstring
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.signature_errors import with_signature_errors
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.calls.op_errors import check_leaked
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.nodes.node import RemovableHandle
from sbpjax._core.tensor.storage.exchange import Run, exchange
from sbpjax._core.tensor.storage.payload import is_traced, requires_grad
from sbpjax._core.tensor.storage.version_counter import Fields, Items, States, changes
from sbpjax._core.tensor.tape.grad_mode import enable_grad, no_grad
from sbpjax._core.tensor.tape.row_grad import RowGrad, dense, row_table_of
from sbpjax._core.tensor.tape.zeroing import zero_grads
from sbpjax.errors import ModuleMethodError, OpError
from sbpjax.optim import background_compile, run, saving
from sbpjax.optim.check import at_least_zero, checked_implementation, is_on, params_type, params_value
from sbpjax.optim.fast_path import FastUpdate, Update
from sbpjax.optim.options import Choices, Item, clips
from sbpjax.optim.param_groups import check_added_group, make_group, request_row_grads
from sbpjax.optim.parameter_state import give_own_steps, prepare_state
from sbpjax.optim.rules import MASTER, Bucket
from sbpjax.optim.step_hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from sbpjax.optim.step_hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from sbpjax.optim.step_hooks import with_step_hooks
from sbpjax.sbp.layout import Layout

from .clip_grad import clip_grad_norm_

# Of a bucket: group, step count, on masters, by rows, whether other rows are left alone, names of states.
_Key = tuple[int, int, bool, bool, bool, tuple[str, ...]]

# Descriptions of the arguments that optimizers share.
_ARGUMENTS = {
    "params": 'the parameters, or dicts with ``"params"`` and options of their own.',
    "lr": "step size.",
    "betas": "decay rates of the two running means.",
    "eps": "added to the denominator.",
    "weight_decay": "L2 decay, added to the gradient.",
    "amsgrad": "divide by the largest v so far.",
    "decoupled_weight_decay": "decay the weights themselves, as `AdamW` does.",
    "maximize": "climb instead.",
    "fused": "accepted for compatibility; the update is always one program.",
    "implementation": "PyTorch's other choices, such as `foreach` and `capturable`, without effect.",
}


def _missing_method_error(optimizer: Any, method: str) -> ModuleMethodError:
    name = type(optimizer).__name__
    return ModuleMethodError(
        f"a step of {name}",
        f"class {name} without a {method}",
        "an optimizer of sbpjax defines its rule, state and flags; Optimizer alone updates nothing",
        "sbpjax.optim.AdamW(...), or from_optax(...) for a rule of your own",
    )


class Optimizer:
    """Base of the optimizers; a subclass defines its hyperparameters, flags, state and rule.

    Args:
        params: the parameters, or dicts with ``"params"`` and options of their own.
        defaults: the options of groups that do not give theirs.
        implementation: PyTorch's choices of an implementation, kept with the defaults and without effect.
    """

    hyper: ClassVar[tuple[str, ...]] = ("lr",)
    _dynamic: ClassVar[tuple[str, ...]] = ("lr",)
    _not_negative: ClassVar[tuple[str, ...]] = ()  # options that are at least 0
    _state_names: ClassVar[tuple[str, ...] | None] = None  # names of the state tensors per parameter, see `_states`
    _rule: Callable  # a staticmethod: the pure update rule, see `sbpjax.optim.rules`
    _counts_steps: ClassVar[bool] = True  # whether the rule reads the step count, which `state_dict` has then
    support_sparse: ClassVar[bool] = False  # whether ``is_sparse`` groups have a meaning: a zero gradient moves nothing

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("sbpjax."):
            cls.__doc__ = FamilyDocstring(cls.__doc__, _ARGUMENTS)  # type: ignore[assignment]
            if "__init__" in vars(cls):
                cls.__init__ = with_signature_errors(cls.__init__)
        elif "step" in vars(cls):  # a library's optimizer with a step of its own
            cls.step = with_step_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Iterable, defaults: dict[str, Any], implementation: Choices | None = None):
        if isinstance(params, Tensor):
            rule = "params argument given to the optimizer should be an iterable of Tensors or dicts"
            raise params_type(params, rule)
        chosen = {} if implementation is None else checked_implementation(type(self), implementation)
        self.defaults = {**defaults, **chosen}
        self._check({**self.defaults, "params": ()})  # before the parameters, as in PyTorch
        self.state: States = States(Fields)
        self.param_groups: list[dict[str, Any]] = Items()
        self._laid: dict[Tensor, Any] = {}  # per parameter the layout that its state was made for
        self._skip: Tensor | None = None
        self._repeat = FastUpdate()
        self._step_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Callable] = OrderedDict()
        enable_backward_compile(functools.partial(background_compile.compile_update, weakref.ref(self)))
        groups = list(params)
        if not groups and isinstance(params, (list, tuple)):  # a generator may find none, as in OneFlow
            raise params_value("no parameter", "optimizer got an empty parameter list")
        if not groups or not isinstance(groups[0], Mapping):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        changes.now = object()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy or a pickle, without devices, which are determined again in the next step."""
        return {**vars(self), "_laid": {p: at for p, at in self._laid.items() if isinstance(at, Layout)}}

    # -- for subclasses to define ----------------------------------------------------------------------------------

    def _numbers(self, group: dict[str, Any]) -> tuple[Any, ...]:
        """Return the hyperparameters of a group as numbers; they are inputs of the compiled update."""
        return tuple(group[name] for name in self.hyper)

    def _states(self, group: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of the state tensors per parameter."""
        if self._state_names is None:
            raise _missing_method_error(self, "_states")
        return self._state_names

    def _states_of(self, param: Tensor, group: dict[str, Any]) -> tuple[str, ...]:
        """Return the names of a parameter's state tensors, where they differ within a group."""
        return self._states(group)

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        """Return the options that choose the formula; part of the compiled update's key."""
        if not {"maximize", "weight_decay"} <= group.keys():
            raise _missing_method_error(self, "_flags")
        return ("maximize", bool(group["maximize"])), ("decay", is_on(group["weight_decay"]))

    def _initial(self, name: str, group: dict[str, Any]) -> float:
        """Return the initial value of a state tensor."""
        return 0.0

    def _shape(self, name: str, param: Tensor) -> tuple[int, ...] | None:
        """Return the shape of a state tensor that differs from its parameter's; such a one is the same on all ranks."""
        return None

    # -- groups ----------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own, e.g. when a frozen layer joins the training."""
        group = make_group(param_group, self.defaults)
        self._check(group)
        params = group["params"]
        row_tables = [table for p in params if (table := row_table_of(p)) is not None]
        if group.get("is_sparse") or row_tables:
            self._check_sparse()
        check_added_group(group, self.param_groups)
        self.param_groups.append(group)
        if group.get("is_sparse"):
            request_row_grads(params, True)
        for add_optimizer in row_tables:
            add_optimizer(self)

    def _check(self, group: dict[str, Any]) -> None:
        """Raise a ValueError for an option out of its range."""
        for name in self._not_negative:
            at_least_zero(name, group[name])

    def _check_sparse(self) -> None:
        if not self.support_sparse:
            seen = f"is_sparse=True for {type(self).__name__}"
            rule = (
                "its update moves rows without gradient too, so it has no sparse form; SGD, Adam, Adagrad and Ftrl have"
            )
            raise params_value(seen, rule, "sbpjax.optim.Adam(params)")

    def use_sparse_updates(self, enabled: bool = True) -> None:
        """Leave rows of a table with zero gradient unchanged, state included, in all groups.

        Rows are those of dim 0 of parameters of two dims and more; the step count goes on for all, so a row that comes
        back after a while is corrected for the bias of all steps. In a graph, and where `nn.Embedding` is ``sparse``,
        tables have gradients of rows: then the rows that a batch looked up are read and written, and no others.

        Raises:
            ValueError: the update of this optimizer moves rows without gradient.
        """
        if enabled:
            self._check_sparse()
        for group in self.param_groups:
            group["is_sparse"] = enabled
            request_row_grads(group["params"], enabled)

    def use_master_weights(self, enabled: bool = True) -> None:
        """Keep a float32 copy of every parameter of lower precision, and update that, in all groups.

        The state of such a parameter is float32, and the parameter is its rounded copy. A value that the user
        writes into the parameter is taken over into the copy at the next step.
        """
        for group in self.param_groups:
            group["master_weights"] = enabled

    def clip_grad(self, error_if_nonfinite: bool = False) -> None:
        """Scale the gradients of each group with ``"clip_grad_max_norm"`` so that their norm is at most that.

        ``"clip_grad_norm_type"`` is the p of the norm, 2 if absent.

        Args:
            error_if_nonfinite: raise if a norm is infinite or NaN; not in a traced program.
        """
        limited = [group for group in self.param_groups if clips(group)]
        if not limited:
            warn("clip_grad: no parameter group has clip_grad_max_norm, so nothing is clipped")
        for group in limited:
            norm_type = group.get("clip_grad_norm_type", 2.0)
            clip_grad_norm_(group["params"], group["clip_grad_max_norm"], norm_type, error_if_nonfinite)

    @property
    def clips(self) -> bool:
        """Whether any group clips its gradients."""
        return any(clips(group) for group in self.param_groups)

    def zero_grad(self, set_to_none: bool | None = None) -> None:
        """Set all gradients to zero in place, or drop them.

        Args:
            set_to_none: drop them; a step then leaves a parameter alone that the next backward does not reach. The
                default is OneFlow's, False, or under the name torch PyTorch's, True.
        """
        for group in self.param_groups:
            zero_grads(group["params"], set_to_none)

    # -- the step --------------------------------------------------------------------------------------------------

    @hide_mesh
    @with_step_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient and requires one; parameters frozen since stay unchanged.

        Args:
            closure: computes the loss anew and calls backward; its result is returned.
        """
        if mode.touch is not None:
            mode.touch(self)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        try:
            with no_grad():
                self._update()
        except Exception:
            self._check_traced()
            raise
        return loss

    def step_unless(self, skip: Tensor, closure: Callable[[], Any] | None = None) -> Any:
        """Do `step`, but change neither parameters nor state if a 0-d flag is set; the flag is not read on the host."""
        try:
            object.__setattr__(self, "_skip", skip)  # not a change that programs are keyed by
            return self.step(closure)
        finally:
            object.__setattr__(self, "_skip", None)

    def _update(self) -> None:
        mark = changes.now
        updated = [p for group in self.param_groups for p in group["params"] if p.grad is not None and requires_grad(p)]
        if any(p.grad.__class__ is RowGrad for p in updated):
            self._make_dense()
        updates = self._repeat.find_updates(updated)
        if updates is None:
            updates = self._gather_updates()
        runs: list[Run] = []
        for buckets, jobs, groups in updates:
            numbers = [self._numbers(self.param_groups[i]) for i in groups]
            runs += run.update_of(buckets, [job._replace(numbers=n) for job, n in zip(jobs, numbers)], self._skip)
        exchange(*runs)
        self._repeat.keep(mark, updated, updates)

    def _check_traced(self) -> None:
        """Raise for a gradient of a trace where the parameter is outside of it."""
        for group in self.param_groups:
            for p in group["params"]:
                if is_traced(p.grad) and not is_traced(p):
                    check_leaked(p.grad)
                    raise OpError(
                        f"{type(self).__name__}.step() inside a program of JAX",
                        f"{p.dtype.name}{list(p.shape)}, a parameter that the program closes over",
                        "a program of JAX changes only what it makes; it returns new parameters",
                        "sbpjax.compile(step, state=(model, optimizer)), or nn.to_pure(model) and optax",
                    )

    def _gather_updates(self) -> list[Update]:
        """Return the programs of a step: one per place, over the buckets of parameters with the same rule."""
        places: dict[Any, dict[_Key, list[Tensor]]] = {}
        new_steps: dict[Any, Tensor] = {}
        for index, group in enumerate(self.param_groups):
            for param in group["params"]:
                if param.grad is not None and requires_grad(param):
                    place = run.place_of(param)
                    ready = prepare_state(self, param, index, place, new_steps)
                    key = self._key(param, index, ready, param.grad.__class__ is RowGrad)
                    places.setdefault(place, {}).setdefault(key, []).append(param)
        if run.TRACE not in places:
            give_own_steps(self.state, places.values())
        return [self._make_update(list(buckets.items()), self.state) for buckets in places.values()]

    def _key(self, param: Tensor, index: int, state: dict[str, Any], of_rows: bool) -> _Key:
        group = self.param_groups[index]
        lazy = bool(group.get("is_sparse")) or row_table_of(param) is not None
        # A count that no rule reads divides no bucket: one that is loaded without it would be rounded otherwise.
        count = id(state["step"]) if self._counts_steps else 0
        return index, count, MASTER in state, of_rows, lazy, self._states_of(param, group)

    def _make_dense(self) -> None:
        """Make gradients of rows dense where the update moves other rows as well."""
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad.__class__ is not RowGrad or group.get("is_sparse") or self._leaves_rows(group):
                    continue
                if row_table_of(param) is None:
                    param.grad = dense(param.grad, param)

    def _leaves_rows(self, group: dict[str, Any]) -> bool:
        """Return whether the whole update leaves rows without a gradient unchanged, as an update of rows does."""
        return False

    def _make_update(self, found: list[tuple[_Key, list[Tensor]]], state: Mapping[Tensor, dict[str, Any]]) -> Update:
        buckets, jobs = [], []
        for (index, _, on_masters, of_rows, lazy, names), params in found:
            group = self.param_groups[index]
            names = (*names, MASTER) if on_masters else names
            buckets.append(Bucket(self._rule, self._flags(group), self.hyper, names, len(params), lazy, of_rows))
            states = [[state[p][name] for p in params] for name in names]
            jobs.append(run.Job((), state[params[0]]["step"], params, states))
        return Update(tuple(buckets), jobs, [index for (index, *_), _ in found])

    # -- state -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return ``{"state": {number: tensors}, "param_groups": [options]}`` with parameters numbered in order."""
        return saving.pack(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the options and state that `state_dict` returned.

        A tensor gets the layout of the state that it replaces, or else of its parameter.

        Raises:
            ValueError: groups, options, names or shapes differ; nothing is changed then.
        """
        self.check_state_dict(state_dict)
        self._take_state(state_dict)

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raise as `load_state_dict` would, and change nothing."""
        saving.check(self, state_dict)

    def snapshot(self) -> Callable[[], None]:
        """Return a function that puts state and options back as they are now; the tensors' values are not copied."""
        tensors = {param: state.copy() for param, state in self.state.items()}
        groups, laid = [(group, dict(group)) for group in self.param_groups], dict(self._laid)

        def undo() -> None:
            self.state.clear()
            self.state.update(tensors)
            self._laid = laid
            for group, options in groups:
                group.clear()
                group.update(options)
            self.param_groups[:] = [group for group, _ in groups]

        return undo

    def _take_state(self, state_dict: dict[str, Any]) -> None:
        self.state, options = saving.unpack(self, state_dict)
        for group, loaded in zip(self.param_groups, options):
            group.update(loaded)

    # -- for compiled programs -------------------------------------------------------------------------------------

    def prepare(self, made: Callable[[Tensor, dict[str, Tensor]], object] | None = None) -> None:
        """Create the state of every parameter that records gradients now, before its first step.

        In a traced step all parameters of a group share one step count, including those without a gradient there.

        Args:
            made: called with each parameter and its state before the next one's is made, e.g. to lay it out anew.
        """
        with no_grad():
            new_steps: dict[Any, Tensor] = {}
            for index, group in enumerate(self.param_groups):
                for param in group["params"]:
                    if param.requires_grad:
                        state = prepare_state(self, param, index, run.place_of(param), new_steps)
                        if made is not None:
                            made(param, state)

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

    def dynamic_options(self) -> list[tuple[Any, Any]]:
        """Return (holder, key) of every number that a schedule may change without a new compilation.

        ``holder[key]`` reads it and ``holder[key] = value`` sets it; the holder is the group, or for the numbers of a
        tuple (Adam's betas) an `Item` of it.
        """
        found: list[tuple[Any, Any]] = []
        for group in self.param_groups:
            for name in self._dynamic_names(group):
                items = group[name] if isinstance(group[name], Sequence) else None
                found += [(group, name)] if items is None else [(Item(group, name), i) for i in range(len(items))]
        return found

    def _dynamic_names(self, group: dict[str, Any]) -> tuple[str, ...]:
        # An option at zero switches a part of the formula off; the learning rate alone stays a number even then.
        names = tuple(name for name in self._dynamic if name == "lr" or is_on(group[name]))
        return (*names, "clip_grad_max_norm") if clips(group) else names

    def static_options(self) -> tuple:
        """Return the remaining dependencies of a program traced on this optimizer; hashable."""
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


add_oneflow_arguments(globals(), "optim.")
