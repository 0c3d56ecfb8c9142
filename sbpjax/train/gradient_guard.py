"""`GradientGuard`: skips steps with non-finite or spiking gradients, decided on the devices.

    step   norm of the gradients   mean of the good ones   with spike=10
    41     2.1                     2.0                     parameters are updated
    42     nan                     2.0                     left out
    43     31.0                    2.0                     left out: more than ten times the mean
    44     1.9                     2.0                     parameters are updated

Whether a step is left out is decided on the devices, inside its program; nothing waits for it. The host learns it when
it reads the losses. If steps are left out repeatedly, `GuardMonitor` ends the run, and saves the last one's batch; it
does the same if the losses are NaN while the gradients are not, as with a label outside the classes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

import sbpjax as flow
from sbpjax import env, nn, optim
from sbpjax.errors import TrainError

from .hooks import Hook
from .hooks.hook import is_due

if TYPE_CHECKING:
    from .trainer import Trainer

NORM, MEAN, GOOD, LEFT_OUT, IN_ROW = range(5)  # places in `GradientGuard.numbers`
_KEPT = 0.9  # of the running mean, by each good step
_WARM = 20  # good steps before a spike can be detected


class GradientGuard:
    """Skip steps whose gradients hold NaN or infinities, or are far larger than usual.

    A graph takes it as a loss scaler, see `Graph.set_grad_scaler`.

    Args:
        spike: how many times the running mean a norm may be; None for any. It counts from the 20th good step on.
        patience: after how many such steps in a row the run ends.
        scaler: a loss scaler, for float16.

    Attributes:
        numbers: ``(5,)`` on the devices: the norm of the last step, the mean of good ones, how many were good, how many
            were left out, and of those how many in a row at the end.

    Example:
        >>> GradientGuard(spike=10.0).state_dict()["good"]
        0
    """

    def __init__(self, spike: float | None = None, *, patience: int = 5, scaler: Any = None):
        if (spike is not None and not spike > 1) or patience < 1:
            rule = "spike is a factor above 1, patience a number of steps, 1 at least"
            raise TrainError(
                "GradientGuard(...)", f"spike={spike}, patience={patience}", rule, "spike=10.0, patience=5"
            )
        self.spike, self.patience, self.scaler = spike, patience, scaler
        self.numbers = flow.zeros(5)
        self._found: tuple[Any, Any] | None = None  # within one step: the norm, and whether it is left out

    # -- the loss scaler interface of a graph ----

    def state_tensors(self) -> list[flow.Tensor]:
        """Return the tensors that a compiled step carries."""
        return [self.numbers, *(self.scaler.state_tensors() if self.scaler is not None else ())]

    def prepare(self, like: flow.Tensor) -> None:
        """Move the numbers to the placement or device of a parameter."""
        if self.scaler is not None:
            self.scaler.prepare(like)
        if like.is_global and not self.numbers.is_global:
            self.numbers.data = self.numbers.to_global(like.placement, [flow.sbp.broadcast] * len(like.sbp))

    def scale(self, outputs: Any) -> Any:
        """Return a loss, scaled if there is a scaler."""
        return outputs if self.scaler is None else self.scaler.scale(outputs)

    def unscale_(self, optimizer: optim.Optimizer) -> None:
        """Take the norm of the gradients of an optimizer's parameters, and decide."""
        if self.scaler is not None:
            self.scaler.unscale_(optimizer)
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        with flow.no_grad():
            norm = nn.utils.get_total_norm(grads).float()
            bad = ~norm.isfinite()
            if self.spike is not None:
                numbers = self.numbers
                bad = bad | ((numbers[GOOD] >= _WARM) & (norm > self.spike * numbers[MEAN]))
        self._found = norm, bad

    def step(self, optimizer: optim.Optimizer) -> None:
        """Update, or leave it out."""
        assert self._found is not None  # a graph calls unscale_ first
        optimizer.step_unless(self._found[1])

    def update(self) -> None:
        """Count the step."""
        assert self._found is not None
        (norm, bad), self._found = self._found, None
        with flow.no_grad():
            mean, good, left_out, in_row = (self.numbers[i] for i in (MEAN, GOOD, LEFT_OUT, IN_ROW))
            moved = flow.where(good > 0, _KEPT * mean + (1 - _KEPT) * norm, norm)
            more = bad.float()
            counts = [good + 1 - more, left_out + more, (in_row + 1) * more]
            self.numbers.copy_(flow.stack([norm, flow.where(bad, mean, moved), *counts]))
        if self.scaler is not None:
            self.scaler.update()

    # -- across a restart ----

    def state_dict(self) -> dict[str, Any]:
        """Return the numbers, and the state of the scaler."""
        norm, mean, good, left_out, in_row = self.numbers.tolist()
        found = {"norm": norm, "mean": mean, "good": int(good), "left_out": int(left_out), "in_row": int(in_row)}
        return found | ({"scaler": self.scaler.state_dict()} if self.scaler is not None else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        values = [state[name] for name in ("norm", "mean", "good", "left_out", "in_row")]
        with flow.no_grad():
            for i, value in enumerate(values):
                self.numbers[i] = value
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])


class GuardMonitor(Hook):
    """Record the counts of a `GradientGuard`, and end a run whose steps are skipped repeatedly.

    Args:
        guard: the guard.
        every: steps between two checks.
    """

    def __init__(self, guard: GradientGuard, every: int):
        self.guard, self.every = guard, every
        self._waiting: tuple[int, flow.Tensor, Any, list[flow.Tensor]] | None = None
        self._losses: list[flow.Tensor] = []
        self._reported = 0
        self._nan_in_row = 0

    def after_step(self, trainer: Trainer) -> None:
        """Read the numbers of the step before, which the devices know by now."""
        self.read_waiting(trainer)
        self._losses.append(trainer.loss)
        if is_due(trainer.step, self.every, trainer.max_steps):
            self._waiting = trainer.step, self.guard.numbers.clone(), trainer.batch, self._losses
            self._losses = []

    def after_run(self, trainer: Trainer) -> None:
        """Read the last numbers."""
        self.read_waiting(trainer)

    def read_waiting(self, trainer: Trainer) -> None:
        """Read numbers that are waiting; all processes call it.

        Raises:
            TrainError: too many steps in a row were left out, or had NaN losses.
        """
        if self._waiting is None:
            return
        (step, numbers, batch, losses), self._waiting = self._waiting, None
        found = numbers.tolist()
        trainer.record({"grad_norm": found[NORM], "steps_left_out": found[LEFT_OUT]}, step)
        if found[LEFT_OUT] > self._reported:
            self._reported = int(found[LEFT_OUT])
            trainer.write_text(f"up to step {step:,}, {self._reported:,} steps were left out for their gradients")
        before = self._nan_in_row
        for loss in losses:
            self._nan_in_row = 0 if np.isfinite(loss.numpy()).all() else self._nan_in_row + 1
        if self._nan_in_row and not before:
            trainer.write_text(f"at step {step:,} the loss is no number")
        if max(found[IN_ROW], self._nan_in_row) >= self.guard.patience:
            where = self.save(trainer, step, batch)
            fix = (
                f"look at the batch in {where}" if where else "give the run a directory: out=, to find the batch there"
            )
            if found[IN_ROW] >= self.guard.patience:
                spike = self.guard.spike
                mean = f"nan or above {spike:g} × {found[MEAN]:.3g}" if spike else "infinite or nan"
                seen = f"{int(found[IN_ROW])} steps in a row left out; at step {step:,} the norm is {found[NORM]:.3g}"
                rule = f"a run ends when {self.guard.patience} steps in a row have gradients whose norm is {mean}"
                fix += "; a smaller rate, or longer warm-up"
            else:
                seen = f"the losses of {self._nan_in_row} steps in a row are nan or infinite, their gradients are not"
                rule = f"a run ends when {self.guard.patience} steps in a row have a loss that is no number"
                fix += ": are its labels among the classes?"
            raise TrainError(f"training up to step {step:,}", seen, rule, fix)

    def save(self, trainer: Trainer, step: int, batch: Any) -> str | None:
        """Write a batch as ``OUT/left_out_STEP.npz``; return its path."""
        if trainer.out is None:
            return None
        parts = batch.items() if isinstance(batch, dict) else enumerate(batch if isinstance(batch, list) else [batch])
        arrays = {str(name): part.numpy() for name, part in parts if isinstance(part, flow.Tensor)}
        path = trainer.out / f"left_out_{step}.npz"
        if env.get_rank() == 0:
            with open(f"{path}.part", "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            os.replace(f"{path}.part", path)
        return str(path)
