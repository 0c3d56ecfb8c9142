"""`StaticGradScaler`: fixed loss scale."""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor.creation import like
from sbpjax._core.tensor.storage.payload import put_from
from sbpjax.errors import OpValueError

from .loss_scaling import Scaler


class StaticGradScaler(Scaler):
    """Scale the loss by a fixed factor, and skip a step whose gradients overflow.

    Args:
        scale_factor: the factor.
        enabled: if False, every method passes its argument on.
    """

    def __init__(self, scale_factor: float, enabled: bool = True):
        if not scale_factor > 0:
            rule = "StaticGradScaler's scale_factor must > 0.0"
            raise OpValueError(f"StaticGradScaler({scale_factor!r})", f"{scale_factor!r}", rule, "1024.0")
        super().__init__(scale_factor, enabled)

    def update(self, new_scale: float | None = None) -> None:
        """End the step; the scale is fixed."""
        if self._enabled:
            self.end_step()

    def state_dict(self) -> dict[str, Any]:
        """Return the scale; empty if not enabled."""
        return {"scale": self.get_scale()} if self._enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the scale of a `state_dict`.

        Raises:
            ValueError: it has other keys than ``"scale"``.
        """
        self.check_state_dict(state_dict)
        if self._enabled:
            new = like.full_like(self._scale, float(state_dict["scale"]))
            put_from(self._scale, new)

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Raise as `load_state_dict` would, and change nothing."""
        if not self._enabled:
            return
        if set(state_dict) != {"scale"} or not state_dict["scale"] > 0:
            rule = "it has the one key 'scale', a number above 0"
            fix = "load the state_dict() of a StaticGradScaler"
            raise OpValueError("StaticGradScaler.load_state_dict", f"{state_dict}", rule, fix)
