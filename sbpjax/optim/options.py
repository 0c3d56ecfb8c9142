"""Options of a parameter group: numbers inside tuples, clipping, and PyTorch's choices of an implementation."""

from __future__ import annotations

from typing import Any, TypedDict

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.plain_values import plain


class Choices(TypedDict, total=False):
    """PyTorch's choices of how an update runs; here it is one program whatever they say, and values do not change.

    Attributes:
        foreach: many parameters per kernel.
        capturable: fit for a CUDA graph.
        differentiable: record the update on the tape; only False, as an update writes in place.
    """

    foreach: bool | None
    capturable: bool
    differentiable: bool


class Implementation(Choices, total=False):
    """`Choices`, for optimizers that do not take `fused` by its place.

    Attributes:
        fused: one kernel for the whole update.
    """

    fused: bool | None


class Item:
    """The numbers of a tuple option, each to be read and set by its index.

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
    found = plain(value)
    return tuple(found) if isinstance(found, list) and not isinstance(value, list) else found


def clips(group: dict[str, Any]) -> bool:
    """Return whether a group says how far its gradients are clipped."""
    return group.get("clip_grad_max_norm") is not None
