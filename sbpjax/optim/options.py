"""Options of a parameter group: numbers inside tuples, clipping, PyTorch's implementation choices."""

from __future__ import annotations

from typing import Any, TypedDict

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.plain_values import to_python_value


class Choices(TypedDict, total=False):
    """PyTorch's implementation choices of an update; accepted without effect: it is always one program.

    Attributes:
        foreach: many parameters per kernel.
        capturable: fit for a CUDA graph.
        differentiable: record the update on the tape; only False, as an update writes in place.
    """

    foreach: bool | None
    capturable: bool
    differentiable: bool


class Implementation(Choices, total=False):
    """`Choices` for optimizers that do not accept `fused` by position.

    Attributes:
        fused: one kernel for the whole update.
    """

    fused: bool | None


class Item:
    """Numbers of a tuple option, each read and set by its index.

    Args:
        group: the parameter group.
        name: the option.

    Example:
        >>> Item(group, "betas")[0] = 0.8
    """

    def __init__(self, group: dict[str, Any], name: str) -> None:
        self._group = group
        self._name = name

    def __getitem__(self, index: int) -> Any:
        return self._group[self._name][index]

    def __setitem__(self, index: int, value: Any) -> None:
        values = list(self._group[self._name])
        values[index] = value
        self._group[self._name] = tuple(values)


def plain_option(value: Any) -> Any:
    """Return an option with sequences as tuples, and numbers of other packages as Python's."""
    if value.__class__ in (float, int, bool, type(None), tuple) or isinstance(value, Tensor):
        return value if value.__class__ is not tuple else tuple(map(plain_option, value))
    found = to_python_value(value)
    return tuple(found) if isinstance(found, list) and not isinstance(value, list) else found


def clips(group: dict[str, Any]) -> bool:
    """Return whether a group has a clipping bound for its gradients."""
    return group.get("clip_grad_max_norm") is not None
