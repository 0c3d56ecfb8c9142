"""MLPs of transformer blocks: plain and gated."""

from __future__ import annotations

from collections.abc import Callable

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F


def _gelu_tanh(x: flow.Tensor) -> flow.Tensor:
    return F.gelu(x, approximate="tanh")


# By the names of ``config.json``.
ACTIVATIONS: dict[str, Callable[[flow.Tensor], flow.Tensor]] = {
    "silu": F.silu,
    "swish": F.silu,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_new": _gelu_tanh,
    "gelu_pytorch_tanh": _gelu_tanh,
}


class MLP(nn.Module):
    """``down(activation(up(x)))``.

    Args:
        width: D, of the input and the output.
        hidden: between the two matrices.
        activation: a name of `ACTIVATIONS`.
        bias: whether both have one.
        dropout: probability of a zero among the hidden units, in training.

    Example:
        >>> flow.models.layers.MLP(8, 32, "gelu")(flow.ones(2, 5, 8)).shape
        sbpjax.Size([2, 5, 8])
    """

    def __init__(self, width: int, hidden: int, activation: str, bias: bool = True, dropout: float = 0.0):
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.up = nn.Linear(width, hidden, bias=bias)
        self.down = nn.Linear(hidden, width, bias=bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, T, D)` of `x` `(B, T, D)`."""
        return self.down(self.drop(self.activation(self.up(x))))


class GatedMLP(nn.Module):
    """``down(activation(gate(x)) * up(x))``: SwiGLU, with ``silu``.

    Args:
        width: D, of the input and the output.
        hidden: between the matrices.
        activation: a name of `ACTIVATIONS`.
        bias: whether the three have one.
        dropout: probability of a zero among the hidden units, in training.

    Example:
        >>> flow.models.layers.GatedMLP(8, 24, "silu")(flow.ones(2, 5, 8)).shape
        sbpjax.Size([2, 5, 8])
    """

    def __init__(self, width: int, hidden: int, activation: str, bias: bool = False, dropout: float = 0.0):
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.gate = nn.Linear(width, hidden, bias=bias)
        self.up = nn.Linear(width, hidden, bias=bias)
        self.down = nn.Linear(hidden, width, bias=bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, T, D)` of `x` `(B, T, D)`."""
        return self.down(self.drop(self.activation(self.gate(x)) * self.up(x)))
