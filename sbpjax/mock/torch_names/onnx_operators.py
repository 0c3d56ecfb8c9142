"""`torch.onnx.operators`: shapes as tensors, which are plain numbers here."""

from __future__ import annotations

from sbpjax.tensor import Tensor, from_data
from sbpjax.tensor import dtype as dtypes


def shape_as_tensor(x: Tensor) -> Tensor:
    """Return the sizes as a vector of int64."""
    return from_data.tensor(list(x.shape), dtype=dtypes.int64)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """Return the tensor in a shape given as a vector."""
    return x.reshape(*shape.tolist())
