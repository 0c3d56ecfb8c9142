"""`torch.optim.optimizer`: names besides `Optimizer`, for optimizers of other packages."""

from __future__ import annotations

from typing import Any, TypeAlias

ParamsT: TypeAlias = Any


class _RequiredParameter:
    """Placeholder for an option that a group of parameters must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()
