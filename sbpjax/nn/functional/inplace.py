"""``inplace=True`` of the activations: the result is written into the input."""

from __future__ import annotations

from sbpjax.tensor import Tensor


def into(input: Tensor, result: Tensor) -> Tensor:
    """Write `result` into `input`, as an in-place op of it, and return `input`."""
    raise NotImplementedError
