"""Activation layers by name."""

from __future__ import annotations

from sbpjax import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "hard_swish": nn.Hardswish,
    "hard_sigmoid": nn.Hardsigmoid,
    "sigmoid": nn.Sigmoid,
    "none": nn.Identity,
}


def activation(name: str) -> nn.Module:
    """Return a new layer of an activation.

    Args:
        name: a key of `ACTIVATIONS`.

    Example:
        >>> from sbpjax.vision.models import blocks
        >>> blocks.activation("relu6")(flow.tensor([-1.0, 3.0, 9.0])).tolist()
        [0.0, 3.0, 6.0]
    """
    return ACTIVATIONS[name]()
