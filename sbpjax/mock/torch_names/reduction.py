"""`torch.nn._reduction`: the numbers of PyTorch's core for a loss's `reduction`."""

from __future__ import annotations

from sbpjax.functions.nn.loss import reduced_by

_ENUM = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return 0 for ``"none"``, 1 for ``"mean"``, 2 for ``"sum"``."""
    if reduction not in _ENUM:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _ENUM[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the `reduction` that the two old options mean."""
    return reduced_by(True if size_average is None else size_average, True if reduce is None else reduce, "mean")


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the `reduction` that the two old options mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
