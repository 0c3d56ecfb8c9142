"""What models do with tokens: their positions, the loss of their logits, and weights to begin with."""

from __future__ import annotations

from collections.abc import Callable

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F


def positions_of(tokens: flow.Tensor) -> flow.Tensor:
    """Return the positions ``0 … T - 1`` of tokens `(B, T)`: `(T,)`, on their placement, in every rank whole.

    Example:
        >>> flow.models.layers.positions_of(flow.zeros(2, 3)).tolist()
        [0, 1, 2]
    """
    if not tokens.is_global:
        return flow.arange(tokens.shape[1], device=tokens.device)
    whole = [flow.sbp.broadcast] * len(tokens.placement.hierarchy)
    return flow.arange(tokens.shape[1], placement=tokens.placement, sbp=whole)


def token_loss(logits: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
    """Return the mean cross entropy of targets, in nats per token; targets of -100 do not count.

    Args:
        logits: `(B, T, V)`; any split.
        targets: `(B, T)`.

    Returns:
        A number, float32.

    Example:
        >>> round(flow.models.layers.token_loss(flow.zeros(1, 2, 4), flow.tensor([[1, -100]])).item(), 4)
        1.3863
    """
    # Not as rows of one dim of tokens: positions may be split, and so may the batch.
    return F.cross_entropy(logits.float().transpose(1, -1), targets, ignore_index=-100)


def normal_weights(std: float) -> Callable[[nn.Module], None]:
    """Return a function for `Module.apply`: normal numbers as weights of linear layers and embeddings, zeros as biases.

    Args:
        std: the standard deviation.

    Example:
        >>> layer = flow.nn.Linear(4, 4).apply(flow.models.layers.normal_weights(0.02))
        >>> layer.bias.tolist()
        [0.0, 0.0, 0.0, 0.0]
    """

    def initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    return initialise
