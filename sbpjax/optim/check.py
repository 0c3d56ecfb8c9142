"""Range checks of options."""

from __future__ import annotations

from typing import Any

from sbpjax.tensor import Tensor


def at_least_zero(name: str, value: Any) -> None:
    """Raise a ValueError for a negative number or NaN; a tensor's value is not looked at."""
    if not isinstance(value, Tensor) and not value >= 0:
        raise ValueError(f"Invalid {_WORDS.get(name, name)}: {value}; it must be at least 0")


def is_on(value: Any) -> bool:
    """Return whether an option takes part in the formula; one that is no plain number always does."""
    return not isinstance(value, (int, float)) or value != 0


def betas_in_range(betas: Any) -> None:
    """Raise a ValueError unless both decay rates are in [0, 1)."""
    for index, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}; it must be in [0, 1)")


_WORDS = {
    "lr": "learning rate",
    "momentum": "momentum value",
    "weight_decay": "weight_decay value",
    "eps": "epsilon value",
}
