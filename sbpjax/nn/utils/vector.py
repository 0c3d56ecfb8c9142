"""Flattening of parameters into one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn.names import needs_tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the parameters' elements one after the other."""
    return functions.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write a vector's elements into the parameters, one after the other."""
    if not isinstance(vec, Tensor):
        raise needs_tensor("vector_to_parameters(vec, ...)", vec)
    start = 0
    with no_grad():
        for parameter in parameters:
            count = parameter.numel()
            parameter.copy_(vec[start : start + count].reshape(parameter.shape))
            start += count
