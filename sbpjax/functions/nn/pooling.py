"""Pooling that always gives the places of the largest elements; the table of ops has the others."""

from __future__ import annotations

from typing import Any

from sbpjax.functions.table import found
from sbpjax.tensor.tensor import Tensor


def _with_indices(name: str) -> Any:
    def pooled(input: Tensor, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
        return found("nn.functional", name)(input, *args, **{**options, "return_indices": True})

    pooled.__name__ = pooled.__qualname__ = f"{name}_with_indices"
    pooled.__doc__ = f"Return `{name}` with the flat place of each maximum."
    return pooled


max_pool1d_with_indices = _with_indices("max_pool1d")
max_pool2d_with_indices = _with_indices("max_pool2d")
max_pool3d_with_indices = _with_indices("max_pool3d")
adaptive_max_pool1d_with_indices = _with_indices("adaptive_max_pool1d")
adaptive_max_pool2d_with_indices = _with_indices("adaptive_max_pool2d")
adaptive_max_pool3d_with_indices = _with_indices("adaptive_max_pool3d")
