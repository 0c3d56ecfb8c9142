"""The eager tensor: a handle on a payload, its views, its writes, the ways of running an op, the tape."""

from .handle.tensor import Tensor as Tensor
