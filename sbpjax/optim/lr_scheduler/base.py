"""`LRScheduler`: base of the schedules, a pure function of the step whose value is written to an optimizer.

    scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
    scheduler.lr_at(0.05, 65)                    # 0.0005, whatever was stepped
    for batch in data:
        ...
        optimizer.step()
        scheduler.step()                         # param_groups[i]["lr"] = lr_at(base_lrs[i], last_step, i)

The rate depends on the step number alone, so a resumed run continues it exactly, and a schedule of schedules is a
function of functions. It is computed in Python floats on the host; the learning rate is an input of a compiled step,
so a schedule never compiles anew.


A schedule continues from a rate that was written into ``param_groups`` by hand or by another schedule, as in PyTorch: a
schedule by factors multiplies it by the factor from its last step to this one, so two of them stepped in turn give the
product of both. A schedule that defines the rate itself (by a lambda, cyclic) sets it.

A parameter group that is added later continues from its own rate: it gets the base rate from which the schedule would
have reached that rate. A schedule with one value for each group (a function, a bound) raises.
"""

from __future__ import annotations

import copy
import inspect
import math
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from sbpjax._core.functions.table.texts import FamilyDocstring
from sbpjax._core.runtime.signature_errors import with_signature_errors
from sbpjax.errors import OpTypeError, OpValueError
from sbpjax.optim.optimizer import Optimizer

# Descriptions of the arguments that schedules share.
_ARGUMENTS = {
    "optimizer": "the optimizer.",
    "last_step": "the last step already done.",
    "verbose": "print every new rate.",
    "last_epoch": "PyTorch's name of `last_step`.",
}


class LRScheduler:
    """Base of the schedules; a subclass gives `lr_at`, or `get_lr` as in OneFlow or PyTorch.

    Args:
        optimizer: the optimizer whose ``"lr"`` is set.
        last_step: the last step already done; -1 starts at the beginning.
        verbose: print every new rate.
        last_epoch: PyTorch's name of `last_step`.

    Attributes:
        base_lrs: the rate of each group that the schedule starts from.
        last_lr: the rate of each group that the last step set.
    """

    is_pure: ClassVar[bool] = True  # whether `lr_at` gives the rate of any step; a metric-driven schedule cannot
    _unsaved: ClassVar[tuple[str, ...]] = ()
    _by_factors: ClassVar[bool] = False  # whether a step multiplies the present rate
    _of_groups: ClassVar[str] = ""  # the argument with one value per group, so that no group can be added
    _graph: Callable[[], Any] | None = None  # a weak reference to the graph that steps the schedule
    _applied: list[float] | None = None  # the rates of a graph's last step, until the user steps by hand

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("sbpjax."):
            cls.__doc__ = FamilyDocstring(cls.__doc__, _ARGUMENTS)  # type: ignore[assignment]
            if "__init__" in vars(cls):
                cls.__init__ = with_signature_errors(cls.__init__)

    def __init__(
        self, optimizer: Optimizer, last_step: int = -1, verbose: bool = False, *, last_epoch: int | None = None
    ):
        self.optimizer = checked_optimizer(type(self).__name__, optimizer)
        self.last_step = last_step if last_epoch is None else last_epoch
        self.verbose = verbose
        for index, group in enumerate(optimizer.param_groups):
            if self.last_step == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                rule = f"param 'initial_lr' is not specified in param_groups[{index}] when resuming an optimizer"
                fix = f"optimizer.param_groups[{index}]['initial_lr'] = 0.1"
                raise _MissingRate(f"{type(self).__name__}(last_step={self.last_step})", "no key", rule, fix)
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_lr = [group["lr"] for group in optimizer.param_groups]
        self.step()

    # -- the schedule ----------------------------------------------------------------------------------------------

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        """Return the learning rate of a group at a step; a pure function.

        Args:
            base_lr: the rate that the schedule starts from.
            step: the number of steps done, from 0.
            group: the index of the parameter group.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither lr_at nor get_lr")

    def options_at(self, step: int, group: int = 0) -> dict[str, Any]:
        """Return the other options that the schedule sets in a group at a step: momentum in a cyclic one."""
        return {}

    def get_lr(self, base_lr: float | None = None, step: int | None = None) -> Any:
        """Return the rate at ``(base_lr, step)``, or without arguments the rates of all groups at the last step."""
        if base_lr is None:
            return self.lrs_at(self.last_step)
        return self.lr_at(base_lr, self.last_step if step is None else step)

    def lrs_at(self, step: int) -> list[float]:
        """Return the rate of every group at a step."""
        return [self.lr_at(base, step, index) for index, base in enumerate(self.base_lrs)]

    # -- going on --------------------------------------------------------------------------------------------------

    def step(self, epoch: int | None = None) -> None:
        """Advance by one step, or to step `epoch`.

        Of a schedule that a graph steps (``add_optimizer(optimizer, lr_sch=schedule)``), a step by hand is the one
        that the graph took itself: nothing changes but `get_last_lr`.
        """
        self._applied = None
        if epoch is None and self._graph is not None and self._graph() is not None:
            return
        self._take_new_groups()
        before = self.last_step
        self.last_step = self.last_step + 1 if epoch is None else epoch
        try:
            lrs = self._user_rates() or self._next(before, epoch is not None)
        except Exception:
            self.last_step = before
            raise
        self.update_lrs(lrs)
        for index, group in enumerate(self.optimizer.param_groups[: len(self.base_lrs)]):
            options = self.options_at(self.last_step, index)
            if options:
                group.update(options)

    def _take_new_groups(self) -> None:
        """Adopt groups that were added to the optimizer since the last step, with their present rates."""
        groups = self.optimizer.param_groups[len(self.base_lrs) :]
        if not groups:
            return
        own = self._given_by_group()
        if own:
            raise self._new_group_error(own)
        first = len(self.base_lrs)
        self._extend([self._base_of(group["lr"], first + i) for i, group in enumerate(groups)])

    def _given_by_group(self) -> str:
        """Return the name of the argument with one value per group, or an empty text."""
        return self._of_groups

    def _new_group_error(self, own: str) -> OpValueError:
        name, count = type(self).__name__, len(self.optimizer.param_groups)
        seen = f"{count} parameter groups, {len(self.base_lrs)} when the schedule was made"
        rule = f"the schedule has {own} for each group that it was made with, and none for a later one"
        fix = f"make it anew after add_param_group: {name}(optimizer, ..., last_epoch={self.last_step})"
        return _MissingRate(f"{name}.step()", seen, rule, fix)

    def _extend(self, bases: list[float]) -> None:
        """Take the base rates of new groups."""
        self.base_lrs = [*self.base_lrs, *bases]
        self.last_lr = [*self.last_lr, *(g["lr"] for g in self.optimizer.param_groups[len(self.last_lr) :])]

    def _base_of(self, present: float, group: int) -> float:
        """Return the base rate that leads to a present rate at the last step."""
        if type(self).get_lr is not LRScheduler.get_lr or not self.is_pure or self.last_step < 0:
            return present
        zero, one, two = (self.lr_at(base, self.last_step, group) for base in (0.0, 1.0, 2.0))
        slope = one - zero
        if not slope or not math.isclose(two, zero + 2 * slope, rel_tol=1e-9, abs_tol=1e-12):
            return present
        return (present - zero) / slope

    def _next(self, before: int, absolute: bool) -> list[float]:
        """Return the rates of the step begun, continuing from the present ones if they were written elsewhere."""
        lrs = self.lrs_at(self.last_step)
        if not self._by_factors or absolute:
            return lrs
        own = self.base_lrs if before < 0 else self.lrs_at(before)
        for index, (group, rate) in enumerate(zip(self.optimizer.param_groups, own)):
            if group["lr"] != rate:
                lrs[index] = self._from(group["lr"], rate, lrs[index])
        return lrs

    def _from(self, present: float, before: float, after: float) -> float:
        """Return the rate that follows a present one, where the schedule itself would go from `before` to `after`."""
        return present * after / before if before else present

    def _user_rates(self) -> list[float] | None:
        """Return the rates by a user's own `get_lr`: of ``(base_lr, step)`` as in OneFlow, of nothing as in PyTorch."""
        if type(self).get_lr is LRScheduler.get_lr:
            return None
        if inspect.signature(self.get_lr).parameters:
            return [self.get_lr(base, self.last_step) for base in self.base_lrs]
        return list(self.get_lr())

    def update_lrs(self, lrs: list[float]) -> None:
        """Write the rates into the optimizer's groups."""
        groups = self.optimizer.param_groups
        if len(lrs) != len(groups):
            seen = f"{len(lrs)} rates for {len(groups)} parameter groups"
            operation, rule = f"{type(self).__name__}.step()", "a schedule gives a rate to every group of its optimizer"
            raise OpValueError(operation, seen, rule, "return one for each of optimizer.param_groups from get_lr")
        for index, (group, lr) in enumerate(zip(groups, lrs)):
            group["lr"] = lr
            if self.verbose:
                self.print_lr(index, lr)
        self.last_lr = list(lrs)

    def print_lr(self, group: int, lr: float) -> None:
        """Print the rate of a group."""
        print(f"Last step {self.last_step} adjusting learning rate of param_groups[{group}] to {lr}")

    def get_last_lr(self) -> list[float]:
        """Return the rate of each group that the last step set.

        Of a schedule that a graph steps, a call of the graph is ``optimizer.step()``: its rates are returned after it,
        and those of the next call after ``schedule.step()`` by hand.
        """
        return list(self.last_lr if self._applied is None else self._applied)

    @property
    def _last_lr(self) -> list[float]:
        """Last rates, under PyTorch's name of `last_lr`."""
        return self.last_lr

    @property
    def last_epoch(self) -> int:
        """Last step, under PyTorch's name of `last_step`."""
        return self.last_step

    @last_epoch.setter
    def last_epoch(self, value: int) -> None:
        self.last_step = value

    def stepped_by(self, graph: Any) -> Callable[[], None]:
        """Let a graph take the steps as long as it exists, and return the function by which it does."""
        owner = weakref.ref(graph)

        def step() -> None:
            applied = [group["lr"] for group in self.optimizer.param_groups]
            self._graph = None
            try:
                self.step()
                self._applied = applied
            finally:
                self._graph = owner

        self._graph = owner
        return step

    # -- state -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the schedule, and its options; functions are left out."""
        if not self._given_by_group():
            self._take_new_groups()  # a state has one base rate for each group of the optimizer
        return {name: copy.deepcopy(getattr(self, name)) for name in self._saved_names()}

    def _saved_names(self) -> list[str]:
        return [name for name in vars(self) if name not in ("optimizer", "_graph", "_applied", *self._unsaved)]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy or a pickle, without the graph."""
        return {name: value for name, value in vars(self).items() if name not in ("_graph", "_applied")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of a `state_dict`, and set the learning rates of that step.

        Raises:
            ValueError: keys or the number of groups differ; nothing is changed then.
        """
        self.check_state_dict(state_dict)
        self._applied = None
        self._take_state(state_dict)
        self.update_lrs(self.last_lr)

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raise as `load_state_dict` would, and change nothing."""
        operation = f"{type(self).__name__}.load_state_dict"
        missing = sorted(set(self._saved_names()) - set(state_dict))
        unknown = sorted(set(state_dict) - set(self._saved_names()))
        if missing or unknown:
            rule = f"missing keys {missing}, unknown keys {unknown}"
            raise OpValueError(operation, f"keys {sorted(state_dict)}", rule, f"{type(self).__name__}'s own")
        if "base_lrs" in state_dict and len(state_dict["base_lrs"]) != len(self.base_lrs):
            seen = f"rates of {len(state_dict['base_lrs'])} groups"
            rule = f"the optimizer has {len(self.base_lrs)} parameter groups"
            raise OpValueError(operation, seen, rule, "make the optimizer with the groups it was saved with")

    def _take_state(self, state_dict: dict[str, Any]) -> None:
        for name in self._saved_names():
            setattr(self, name, copy.deepcopy(state_dict[name]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(last_step={self.last_step}, last_lr={self.last_lr})"


_LRScheduler = LRScheduler


class _MissingRate(OpValueError, KeyError):
    """Raised without an initial rate: no ``"initial_lr"`` in a resumed group, none for a group added later."""

    __str__ = OpValueError.__str__  # a KeyError shows the repr of its text


def checked_optimizer(operation: str, optimizer: Any) -> Optimizer:
    """Return the optimizer, or raise a TypeError for anything else."""
    if isinstance(optimizer, Optimizer):
        return optimizer
    name = type(optimizer).__name__
    raise OpTypeError(operation, name, f"{name} is not an Optimizer", f"{operation}(sbpjax.optim.SGD(params), ...)")


def require(ok: bool, scheduler: str, seen: str, rule: str, fix: str) -> None:
    """Raise a ValueError for a bad option of a schedule."""
    if not ok:
        raise OpValueError(f"{scheduler}(...)", seen, rule, fix)


def per_group(scheduler: str, name: str, value: Any, optimizer: Optimizer) -> list:
    """Return one value per parameter group from a list of them or from one for all."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * groups
    require(
        len(value) == groups,
        scheduler,
        f"{len(value)} values for {groups} parameter groups",
        f"Expected {groups} {name}s, but got {len(value)}",
        f"give one {name}, or {groups}",
    )
    return list(value)


Factor = Callable[[int], float]
