"""`torch.onnx.operators`: shapes as tensors, which are plain numbers here."""

from __future__ import annotations

import sbpjax
from sbpjax import Tensor


def shape_as_tensor(x: Tensor) -> Tensor:
    """Return the sizes as a vector of int64."""
    return sbpjax.tensor(list(x.shape), dtype=sbpjax.int64)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """Return the tensor in a shape given as a vector."""
    return x.reshape(*shape.tolist())
