"""The eager tensor: handle, payload, views, in-place writes, op dispatch and autograd tape."""

from .handle.tensor import Tensor as Tensor
