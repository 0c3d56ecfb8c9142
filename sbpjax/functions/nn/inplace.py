"""``inplace=True`` of the activations: the result is written into the input."""

from __future__ import annotations

from sbpjax.tensor import Tensor
from sbpjax.tensor.inplace import into as _into


def into(input: Tensor, result: Tensor) -> Tensor:
    """Write `result` into `input`, as an in-place op of it, and return `input`."""
    return _into(input, result)
