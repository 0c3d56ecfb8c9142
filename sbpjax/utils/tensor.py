"""Conversion from and to PyTorch tensors: `from_torch` and `to_torch`."""

from sbpjax.data.torch_tensors import from_torch as from_torch
from sbpjax.data.torch_tensors import to_torch as to_torch
