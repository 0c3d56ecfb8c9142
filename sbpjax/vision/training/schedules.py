"""Learning rate schedules in timm's form: warm-up, cycles, by epochs or updates.

    rate = Cosine(t_initial=300, lr_min=1e-5, warmup_t=5, warmup_lr_init=1e-6)
    rate(150, 0.1)                                  # the rate at epoch 150 of a base rate of 0.1
    scheduled = ScheduleRunner(optimizer, rate)     # or in updates: ScheduleRunner(..., t_in_epochs=False)
    scheduled.step(epoch + 1)                       # at the end of each epoch; step_update(n) after each update

A schedule holds no state, so a run that goes on needs its time alone. Worked case of cycles: ``t_initial=10``,
``cycle_mul=2``, ``cycle_decay=0.5`` and ``cycle_limit=3`` fall from 1 over 10 epochs, from 0.5 over 20, from 0.25 over
40, and stay at `lr_min` after these 70.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from typing import Any

from sbpjax.errors import ConfigError


@dataclass(frozen=True)
class Schedule:
    """Base class: a warm-up, then the `shape` of a subclass.

    Attributes:
        warmup_t: how long the rate rises, in a line, before the schedule's own shape.
        warmup_lr_init: from which rate.
        warmup_prefix: whether the shape begins behind the warm-up, or has been running all the while.

    Raises:
        ConfigError: a time is below 0.
    """

    warmup_t: int = field(default=0, kw_only=True)
    warmup_lr_init: float = field(default=0.0, kw_only=True)
    warmup_prefix: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.warmup_t < 0 or self.warmup_lr_init < 0:
            raise ConfigError(f"{self}", f"warmup_t={self.warmup_t}", "times and rates are 0 or more", "warmup_t=5")

    def __call__(self, t: int, base: float) -> float:
        """Return the rate at a time, of a base rate."""
        if t < self.warmup_t:
            return self.warmup_lr_init + t * (self.target(base) - self.warmup_lr_init) / self.warmup_t
        return self.shape(t - self.warmup_t if self.warmup_prefix else t, base)

    def target(self, base: float) -> float:
        """Return what the warm-up rises to."""
        return base

    def shape(self, t: int, base: float) -> float:
        """Return the rate without the warm-up."""
        raise NotImplementedError(f"{type(self).__name__} has no shape()")


@dataclass(frozen=True)
class _Cycles(Schedule):
    """Base of schedules that fall from a rate to `lr_min`, once or several times.

    Attributes:
        t_initial: how long the first fall takes.
        lr_min: where it ends.
        cycle_mul: how much longer each one takes than the one before.
        cycle_decay: how much lower each one begins.
        cycle_limit: how many there are.
    """

    t_initial: int = 1
    lr_min: float = 0.0
    cycle_mul: float = 1.0
    cycle_decay: float = 1.0
    cycle_limit: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.t_initial < 1 or self.cycle_limit < 0 or self.cycle_mul <= 0:
            rule = "t_initial is 1 or more, cycle_limit 0 or more, cycle_mul above 0"
            seen = f"t_initial={self.t_initial}, cycle_mul={self.cycle_mul}, cycle_limit={self.cycle_limit}"
            raise ConfigError(f"{type(self).__name__}(...)", seen, rule, "t_initial=300")

    def shape(self, t: int, base: float) -> float:
        """Return the rate without the warm-up."""
        if self.cycle_mul != 1:
            cycle = math.floor(math.log(1 - t / self.t_initial * (1 - self.cycle_mul), self.cycle_mul))
            length = self.cycle_mul**cycle * self.t_initial
            inside = t - (1 - self.cycle_mul**cycle) / (1 - self.cycle_mul) * self.t_initial
        else:
            cycle, length = t // self.t_initial, self.t_initial
            inside = t - self.t_initial * cycle
        if cycle >= self.cycle_limit:
            return self.lr_min
        top = base * self.cycle_decay**cycle
        return self.lr_min + (top - self.lr_min) * self.decay_factor(inside, length)

    def decay_factor(self, t: float, length: float) -> float:
        """Return what is left of the height of a fall: 1 at its beginning, 0 at its end."""
        raise NotImplementedError(f"{type(self).__name__} has no decay_factor()")

    def length(self) -> int:
        """Return after what time the last fall ends."""
        cycles = max(1, self.cycle_limit)
        if self.cycle_mul == 1:
            t = self.t_initial * cycles
        else:
            t = math.floor(-self.t_initial * (self.cycle_mul**cycles - 1) / (1 - self.cycle_mul))
        return t + self.warmup_t if self.warmup_prefix else t


@dataclass(frozen=True)
class Cosine(_Cycles):
    """Cosine schedule: half a period from the base rate to the minimum.

    Attributes:
        k_decay: above 1, the rate stays high for longer.

    Source: Loshchilov and Hutter, "SGDR", 2016.

    Example:
        >>> Cosine(10)(5, 1.0)
        0.5
    """

    k_decay: float = 1.0

    def decay_factor(self, t: float, length: float) -> float:
        """Return what is left of the height."""
        return 0.5 * (1 + math.cos(math.pi * t**self.k_decay / length**self.k_decay))


@dataclass(frozen=True)
class Poly(_Cycles):
    """Polynomial schedule: a power of the remaining time.

    Attributes:
        power: 1 is a line.
        k_decay: above 1, the rate stays high for longer.

    Example:
        >>> Poly(10, power=2.0)(5, 1.0)
        0.25
    """

    power: float = 0.5
    k_decay: float = 1.0

    def decay_factor(self, t: float, length: float) -> float:
        """Return what is left of the height."""
        return (1 - t**self.k_decay / length**self.k_decay) ** self.power


@dataclass(frozen=True)
class Linear(_Cycles):
    """Linear schedule.

    Example:
        >>> Linear(10)(4, 1.0)
        0.6
    """

    def decay_factor(self, t: float, length: float) -> float:
        """Return what is left of the height."""
        return 1 - t / length


@dataclass(frozen=True)
class Tanh(_Cycles):
    """Hyperbolic tangent schedule: high for long, then a steep fall.

    Attributes:
        lb: where on the tangent it begins.
        ub: where it ends.

    Source: Hsueh et al., "Stochastic Gradient Descent with Hyperbolic-Tangent Decay", 2018.
    """

    lb: float = -7.0
    ub: float = 3.0

    def decay_factor(self, t: float, length: float) -> float:
        """Return what is left of the height."""
        share = t / length
        return 0.5 * (1 - math.tanh(self.lb * (1 - share) + self.ub * share))

    def target(self, base: float) -> float:
        """Return what the warm-up rises to: where the shape is by then, which has no flat beginning."""
        return base if self.warmup_prefix else self.shape(self.warmup_t, base)


@dataclass(frozen=True)
class Step(Schedule):
    """Step schedule: a factor at regular intervals.

    Attributes:
        decay_t: how often.
        decay_rate: the factor.
        warmup_prefix: as of `Schedule`, True here.

    Example:
        >>> Step(30, 0.1)(65, 1.0)
        0.010000000000000002
    """

    decay_t: float = 1
    decay_rate: float = 1.0
    warmup_prefix: bool = field(default=True, kw_only=True)

    def shape(self, t: int, base: float) -> float:
        """Return the rate without the warm-up."""
        return base * self.decay_rate ** (t // self.decay_t)


@dataclass(frozen=True)
class MultiStep(Schedule):
    """Multi-step schedule: a factor at given times.

    Attributes:
        decay_t: the times, rising; each takes hold one earlier, at the epoch of that number counted from 1.
        decay_rate: the factor.
        warmup_prefix: as of `Schedule`, True here.

    Example:
        >>> [MultiStep((2, 4), 0.5)(t, 1.0) for t in range(5)]
        [1.0, 0.5, 0.5, 0.25, 0.25]
    """

    decay_t: tuple[int, ...] = ()
    decay_rate: float = 1.0
    warmup_prefix: bool = field(default=True, kw_only=True)

    def shape(self, t: int, base: float) -> float:
        """Return the rate without the warm-up."""
        return base * self.decay_rate ** bisect.bisect_right(self.decay_t, t + 1)


class ScheduleRunner:
    """Writes a schedule's rates into an optimizer.

    Args:
        optimizer: whose ``param_groups`` get their ``"lr"``, times ``"lr_scale"`` where a group has one.
        schedule: the function of time and base rate.
        t_in_epochs: whether its times are epochs, which `step` counts, or updates, which `step_update` counts.

    Attributes:
        base_values: the rate of each group that the schedule starts from.

    Example:
        >>> optimizer = flow.optim.SGD([flow.nn.Parameter(flow.zeros(1))], lr=0.1)
        >>> scheduled = ScheduleRunner(optimizer, Cosine(10))
        >>> scheduled.step(5)
        >>> optimizer.param_groups[0]["lr"]
        0.05
    """

    def __init__(self, optimizer: Any, schedule: Schedule, t_in_epochs: bool = True) -> None:
        self.optimizer, self.schedule, self.t_in_epochs = optimizer, schedule, t_in_epochs
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_values = [group["initial_lr"] for group in optimizer.param_groups]
        self._write(0)

    def step(self, epoch: int) -> None:
        """Set the rates of an epoch, if the schedule's times are epochs."""
        if self.t_in_epochs:
            self._write(epoch)

    def step_update(self, num_updates: int) -> None:
        """Set the rates behind so many updates, if the schedule's times are updates."""
        if not self.t_in_epochs:
            self._write(num_updates)

    def _write(self, t: int) -> None:
        for group, base in zip(self.optimizer.param_groups, self.base_values, strict=True):
            group["lr"] = self.schedule(t, base) * group.get("lr_scale", 1.0)

    def state_dict(self) -> dict[str, Any]:
        """Return what a run that goes on needs: the base rates."""
        return {"base_values": list(self.base_values)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take the base rates."""
        self.base_values = list(state["base_values"])
