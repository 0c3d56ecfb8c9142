"""Loss scaling: multiply the loss, divide the gradients, and skip steps with overflowed gradients.

    scaler = GradScaler()
    loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)                   # only if the true gradients are needed, e.g. to clip them
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()

In float16 a gradient below 6e-8 is zero and one above 65504 infinite. The scale is halved after a step that
overflowed, and doubled after 2,000 that did not.

The scale, the count of good steps and the factors are tensors, and whether a step overflowed is a flag on the device:
an update is skipped by selecting the old values, so nothing waits for the device and the same lines run inside a
compiled step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.storage.payload import payload, put_from, put_results
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax._core.tensor.tape.row_grad import values_of
from sbpjax.errors import OpError, OpTypeError
from sbpjax.optim import Optimizer
from sbpjax.optim.run import TRACE, place_of
from sbpjax.sbp.algebra import broadcast


def unscale_grads(scale: jax.Array, *grads: jax.Array) -> tuple[jax.Array, ...]:
    """Return whether any gradient is infinite or NaN, and the gradients divided by the scale."""
    inverse = 1 / scale
    overflow = ~jnp.isfinite(grads[0]).all()
    for g in grads[1:]:
        overflow |= ~jnp.isfinite(g).all()
    wide = [g.astype(jnp.promote_types(g.dtype, jnp.float32)) for g in grads]
    return (overflow, *((w * inverse.astype(w.dtype)).astype(g.dtype) for w, g in zip(wide, grads)))


unscale_grads.crosses_placements = True  # type: ignore[attr-defined]  # all stages of a pipeline skip together


class _Stage(NamedTuple):
    """Progress of an optimizer within one step.

    Attributes:
        overflow: whether its gradients overflowed, 0-d.
        stepped: whether `step` was called.
        era: the trace in which this happened, None for eager.
    """

    overflow: Tensor
    stepped: bool
    era: Any


class Scaler:
    """Base of static and dynamic scaling: `scale`, `unscale_` and `step`."""

    def __init__(self, scale: float, enabled: bool) -> None:
        self._enabled = enabled
        self._scale = from_data.tensor(float(scale), dtype=dtypes.float32)
        self._stages: dict[int, _Stage] = {}

    def is_enabled(self) -> bool:
        """Return whether scaling is on."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale as a number; waits for the device."""
        return self._scale.item() if self._enabled else 1.0

    # -- for compiled programs ----

    def state_tensors(self) -> list[Tensor]:
        """Return the tensors that a compiled step carries."""
        return [self._scale]

    def prepare(self, like: Tensor | None = None) -> None:
        """Move the state to the placement or device of a tensor, where a compiled step needs it."""
        if like is None or TRACE in (place_of(like), place_of(self._scale)):
            return
        with no_grad():
            for tensor in self.state_tensors():
                there = move_tensor(tensor, like)
                if there is not tensor:
                    put_from(tensor, there)

    # -- one step ----

    def scale(self, outputs: Any) -> Any:
        """Return a loss, or nested losses, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            self.prepare(outputs)
            return outputs * self._scale
        if isinstance(outputs, Iterable) and not isinstance(outputs, (str, dict)):
            parts = [self.scale(o) for o in outputs]
            return parts if not isinstance(outputs, tuple) else tuple(parts)
        seen = type(outputs).__name__
        rule = "outputs must be a Tensor or an iterable of Tensors"
        raise OpTypeError("scaler.scale(outputs)", seen, rule, "scaler.scale(loss).backward()")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place, and note whether one overflowed.

        Raises:
            RuntimeError: it was called already for this step, or after `step`.
        """
        if not self._enabled:
            return
        stage = self._stage(optimizer)
        if stage is not None:
            rule = "unscale_() has already been called on this optimizer since the last update()."
            raise call_order_error("unscale_", "unscale_() is being called after step()." if stage.stepped else rule)
        places: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is not None:
                    grad = values_of(param.grad)
                    places.setdefault(place_of(grad), []).append(grad)
        if not places:
            raise call_order_error(
                "unscale_", "No inf checks were recorded for this optimizer: no parameter has a gradient."
            )
        with no_grad():
            found = [self._unscale_grads(grads) for grads in places.values()]
            overflow = found[0][0]
            if len(found) > 1:  # several placements share no program
                overflow = from_data.tensor(any(flag.item() for flag, *_ in found))
            stage = _Stage(overflow, False, self._current_trace())
            noted = map(self._stages.__setitem__, (id(optimizer),), (stage,))
            grads = [grad for group in places.values() for grad in group]
            put_results(grads, [value for _, *values in found for value in values], noted)

    def _unscale_grads(self, grads: list[Tensor]) -> tuple[Tensor, ...]:
        """Return whether gradients of one place overflowed, and those divided by the scale."""
        pins = (None, *(getattr(g.layout, "codes", None) for g in grads)) if grads[0].is_global else None
        scale = self._scale if place_of(grads[0]) is TRACE else move_tensor(self._scale, grads[0])
        return dispatch.run(op_of(unscale_grads), (scale, *grads), pins)

    def step(self, optimizer: Optimizer, *args: Any) -> Any:
        """Call `unscale_` if it has not been called, and step the optimizer unless a gradient overflowed.

        Args:
            optimizer: its gradients were computed from the scaled loss.
            args: of its `step`; a closure raises.

        Raises:
            RuntimeError: it was called already since the last `update`.
        """
        if not self._enabled:
            return optimizer.step(*args)
        if any(callable(a) for a in args):
            raise call_order_error("step", "Closure use is not currently supported if a scaler is enabled.")
        stage = self._stage(optimizer)
        if stage is None:
            self.unscale_(optimizer)
            stage = self._stages[id(optimizer)]
        elif stage.stepped:
            raise call_order_error("step", "step() has already been called since the last update().")
        if type(optimizer).step is Optimizer.step:
            result = optimizer.step_unless(stage.overflow, *args)
        else:  # a step of its own cannot leave its work undone, so the host has to know
            result = None if stage.overflow.item() else optimizer.step(*args)
        self._stages[id(optimizer)] = stage._replace(stepped=True)
        return result

    def _stage(self, optimizer: Optimizer) -> _Stage | None:
        """Return the progress of an optimizer; that of an ended trace does not count."""
        stage = self._stages.get(id(optimizer))
        return stage if stage is not None and stage.era is self._current_trace() else None

    def _current_trace(self) -> Any:
        array = payload(self._scale)
        return array._trace if isinstance(array, Tracer) else None

    def end_step(self) -> list[Tensor]:
        """Return the flags of all optimizers that took part, and reset them."""
        era = self._current_trace()
        flags = [stage.overflow for stage in self._stages.values() if stage.era is era]
        self._stages = {}
        if not flags:
            raise call_order_error("update", "No inf checks were recorded prior to update.")
        return flags


def move_tensor(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor of the scaler on the placement or device of another; broadcast over a placement."""
    if not like.is_global:
        if not tensor.is_global:
            return tensor if place_of(tensor) is place_of(like) else tensor.to(like.device)
        return tensor.to_local().to(like.device)
    if tensor.is_global and tensor.placement == like.placement:
        return tensor
    sbp = [broadcast] * len(like.placement.hierarchy)
    return tensor.to_global(placement=like.placement, sbp=sbp)


def call_order_error(method: str, rule: str) -> OpError:
    """Return the error for methods called in a wrong order."""
    fix = "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()"
    return OpError(f"scaler.{method}(...)", "the calls since the last update()", rule, fix)
