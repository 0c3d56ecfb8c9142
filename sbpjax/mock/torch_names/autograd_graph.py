"""`torch.autograd.graph`: names beside hooks on saved tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sbpjax.tensor import Tensor
from sbpjax.tensor.tape.node import Node as Node
from sbpjax.tensor.tape.node import RemovableHandle as RemovableHandle


class GradientEdge(NamedTuple):
    """Where on the tape a gradient arrives.

    Attributes:
        node: the node.
        output_nr: which of its outputs.
    """

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return where the gradient of a tensor arrives.

    Raises:
        RuntimeError: the tensor requires no gradient.
    """
    node = tensor._fresh()._edge
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(node, tensor._idx)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Say that a tensor was written into: backward of what was saved before is then an error."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        t._set(t._fresh()._array, t._layout)
