"""`Parameter`: a tensor that a module owns and an optimizer updates."""

from __future__ import annotations

from typing import Any

import sbpjax
from sbpjax.tensor import Tensor


class Parameter(Tensor):
    """A leaf tensor that registers itself when it is assigned to a module.

    Args:
        data: its value; the storage is shared.
        requires_grad: whether it gets a gradient.

    Example:
        >>> self.scale = nn.Parameter(flow.ones(16))
    """

    __slots__ = ()

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            data = sbpjax.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor, got {type(data).__name__}")
        self._adopt(data.detach())
        if requires_grad:
            self.requires_grad_(True)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def empty(*size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Return a tensor for a parameter's value, to be filled by an initialiser."""
    return sbpjax.empty(*size, device=device, dtype=dtype)
