"""Token helpers: position numbers, selected positions, cross-entropy loss, weight initialisation."""

from __future__ import annotations

from collections.abc import Callable

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F


def make_position_ids(input_ids: flow.Tensor) -> flow.Tensor:
    """Return the positions ``0 … T - 1`` of tokens `(B, T)`: `(T,)`, on their placement, in every rank whole.

    Example:
        >>> flow.models.layers.make_position_ids(flow.zeros(2, 3)).tolist()
        [0, 1, 2]
    """
    if not input_ids.is_global:
        return flow.arange(input_ids.shape[1], device=input_ids.device)
    whole = [flow.sbp.broadcast] * len(input_ids.placement.hierarchy)
    return flow.arange(input_ids.shape[1], placement=input_ids.placement, sbp=whole)


def select_positions(x: flow.Tensor, positions: flow.Tensor | None) -> flow.Tensor:
    """Return one position of each row of `(B, T, D)`, `(B, 1, D)`; without `positions` all.

    Args:
        x: `(B, T, D)`, any split but of T.
        positions: `(B,)`, the position of each row; None for all.

    Example:
        >>> x = flow.arange(6).reshape(2, 3, 1)
        >>> flow.models.layers.select_positions(x, flow.tensor([2, 0]))[:, 0, 0].tolist()
        [2, 3]
    """
    return x if positions is None else x.gather(1, positions[:, None, None].expand(-1, 1, x.shape[2]))


def token_loss(logits: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
    """Return the mean cross entropy of labels, in nats per token; labels of -100 do not count.

    Args:
        logits: `(B, T, V)`; any split.
        labels: `(B, T)`.

    Returns:
        A number, float32.

    Example:
        >>> round(flow.models.layers.token_loss(flow.zeros(1, 2, 4), flow.tensor([[1, -100]])).item(), 4)
        1.3863
    """
    # Not as rows of one dim of tokens: positions may be split, and so may the batch.
    return F.cross_entropy(logits.float().transpose(1, -1), labels, ignore_index=-100)


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
