"""`GradScaler`: dynamic loss scaling for float16.

The scale is halved after a step that overflowed, and doubled after 2,000 that did not; both factors and the count are
tensors, so a compiled step carries them and follows a change of them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data, like
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.storage.payload import put_all_from, put_from
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import OpValueError

from .loss_scaling import Scaler, move_tensor

_STATE = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")


def next_scale(scale: jax.Array, good: jax.Array, factors: jax.Array, *overflows: jax.Array) -> tuple[jax.Array, ...]:
    """Return the scale after a step and the count of good steps since it last changed.

    Args:
        scale: 0-d.
        good: the count, 0-d int32.
        factors: ``(growth, backoff, interval)``.
        overflows: one flag per optimizer.
    """
    growth, backoff, interval = factors[0], factors[1], factors[2]
    overflow = overflows[0]
    for flag in overflows[1:]:
        overflow |= flag
    due = (good + 1).astype(factors.dtype) == interval
    grown = scale * growth
    grown = jnp.where(due & jnp.isfinite(grown), grown, scale)
    return jnp.where(overflow, scale * backoff, grown), jnp.where(overflow | due, jnp.zeros_like(good), good + 1)


class GradScaler(Scaler):
    """Scale the loss by a factor that falls when gradients overflow and rises after a period without overflows.

    Args:
        init_scale: the first scale.
        growth_factor: factor of the scale after `growth_interval` steps without overflow.
        backoff_factor: factor after a step with one.
        growth_interval: see above.
        enabled: if False, every method passes its argument on.
        device: for PyTorch's spelling, also as first argument: the scale is moved to the device of the loss.

    Source: Micikevicius et al., Mixed Precision Training (2018).
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
        *,
        device: Any = None,
    ):
        if isinstance(init_scale, str):  # PyTorch's newer spelling names the device first
            init_scale = 2.0**16
        _check_factors(init_scale, growth_factor, backoff_factor, growth_interval)
        super().__init__(init_scale, enabled)
        self._growth_tracker = from_data.tensor(0, dtype=dtypes.int32)
        self._set_factors(growth_factor, backoff_factor, growth_interval)

    def _set_factors(self, growth_factor: float, backoff_factor: float, growth_interval: int) -> None:
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        factors = [float(growth_factor), float(backoff_factor), float(growth_interval)]
        self._factors = from_data.tensor(factors, dtype=dtypes.float32)
        self.prepare(self._scale)

    def get_growth_factor(self) -> float:
        """Return the factor of the scale after enough good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor of the scale after enough good steps."""
        _check_factors(1.0, new_factor, self._backoff_factor, self._growth_interval)
        self._set_factors(new_factor, self._backoff_factor, self._growth_interval)

    def get_backoff_factor(self) -> float:
        """Return the factor of the scale after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor of the scale after an overflow."""
        _check_factors(1.0, self._growth_factor, new_factor, self._growth_interval)
        self._set_factors(self._growth_factor, new_factor, self._growth_interval)

    def get_growth_interval(self) -> int:
        """Return the number of good steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of good steps after which the scale grows."""
        _check_factors(1.0, self._growth_factor, self._backoff_factor, new_interval)
        self._set_factors(self._growth_factor, self._backoff_factor, new_interval)

    def state_tensors(self) -> list[Tensor]:
        """Return the tensors that a compiled step carries: the scale, the count of good steps, the factors."""
        return [self._scale, self._growth_tracker, self._factors]

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """End the step: lower the scale if gradients overflowed, raise it if they have not for long enough.

        Args:
            new_scale: set this scale instead.
        """
        if not self._enabled:
            return
        with no_grad():
            if new_scale is not None:
                value = new_scale if isinstance(new_scale, Tensor) else like.full_like(self._scale, float(new_scale))
                value = value.detach().to(dtypes.float32)
                value = value if self._current_trace() is not None else move_tensor(value.clone(), self._scale)
                put_from(self._scale, value)
                self._stages = {}
                return
            flags = self.end_step()
            if self._current_trace() is None:
                flags = [move_tensor(flag, self._scale) for flag in flags]
            inputs = (self._scale, self._growth_tracker, self._factors, *flags)
            pins = (
                (self._scale.sbp, self._scale.sbp) if self._current_trace() is None and self._scale.is_global else None
            )
            scale, count = dispatch.run(op_of(next_scale), inputs, pins)
            put_all_from((self._scale, self._growth_tracker), (scale, count))

    def state_dict(self) -> dict[str, Any]:
        """Return the scale, the factors and the count of good steps as numbers; empty if not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": int(self._growth_tracker.item()),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state of a `state_dict`.

        Raises:
            ValueError: keys are missing or unknown, or a value is out of range; nothing is changed then.
        """
        self.check_state_dict(state_dict)
        if not self._enabled:
            return
        scale, growth, backoff, interval, count = (state_dict[name] for name in _STATE)
        written = (self._scale, self._growth_tracker)
        put_all_from(written, [like.full_like(t, v) for t, v in zip(written, (float(scale), int(count)))])
        self._set_factors(growth, backoff, interval)

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raise as `load_state_dict` would, and change nothing."""
        if not self._enabled:
            return
        if set(state_dict) != set(_STATE):
            missing, unknown = sorted(set(_STATE) - set(state_dict)), sorted(set(state_dict) - set(_STATE))
            rule = f"missing keys {missing}, unknown keys {unknown}"
            fix = "load the state_dict() of an enabled GradScaler"
            raise OpValueError("GradScaler.load_state_dict", f"keys {sorted(state_dict)}", rule, fix)
        _check_factors(*(state_dict[name] for name in _STATE[:4]))


def _check_factors(scale: float, growth_factor: float, backoff_factor: float, growth_interval: int) -> None:
    for ok, name, value, rule in (
        (scale > 0, "init_scale", scale, "The scale must be > 0."),
        (growth_factor > 1.0, "growth_factor", growth_factor, "The growth factor must be > 1.0."),
        (backoff_factor < 1.0, "backoff_factor", backoff_factor, "The backoff factor must be < 1.0."),
        (growth_interval >= 1, "growth_interval", growth_interval, "The growth interval must be at least 1."),
    ):
        if not ok:
            raise OpValueError(f"GradScaler({name}={value!r})", f"{value!r}", rule, "GradScaler()")
