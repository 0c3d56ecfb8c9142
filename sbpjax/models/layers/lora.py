"""`LoraLinear`: a frozen linear layer plus a trained low-rank product."""

from __future__ import annotations

import math

import sbpjax as flow
from sbpjax import nn, sbp
from sbpjax.nn import functional as F


class LoraLinear(nn.Linear):
    """``y = x Wᵀ + b + scale · drop(x) Aᵀ Bᵀ``; B starts as zeros, so that y is that of the layer alone.

    `lora_a` is `(rank, in)` and `lora_b` is `(out, rank)`: each is split as the dim of W that it shares, so that no
    more moves between ranks than without them.

    Args:
        base: the layer; its parameters become this one's.
        rank: rows of A.
        scale: factor of the product; alpha / rank, as the paper has it.
        dropout: probability of a zero in what A gets, in training.

    Source: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models (2021).

    Example:
        >>> layer = flow.models.layers.LoraLinear(flow.nn.Linear(8, 6), rank=2, scale=2.0)
        >>> [(name, list(p.shape)) for name, p in layer.named_parameters() if p.requires_grad]
        [('lora_a', [2, 8]), ('lora_b', [6, 2])]
    """

    def __init__(self, base: nn.Linear, rank: int, scale: float, dropout: float = 0.0):
        nn.Module.__init__(self)
        self.in_features, self.out_features = base.in_features, base.out_features
        self.weight, self.bias = base.weight, base.bias
        self.rank, self.scale = rank, scale
        self.drop = nn.Dropout(dropout)
        wide = base.weight.dtype in (flow.float32, flow.float64)
        dtype = base.weight.dtype if wide else flow.float32  # small steps are lost in half precision
        a = flow.empty(rank, self.in_features, dtype=dtype)
        nn.init.kaiming_uniform_(a, a=math.sqrt(5))
        self.lora_a = nn.Parameter(self._to_layout(a, 1))
        self.lora_b = nn.Parameter(self._to_layout(flow.zeros(self.out_features, rank, dtype=dtype), 0))
        for parameter in (self.weight, self.bias):
            if parameter is not None:
                parameter.requires_grad_(False)

    def _to_layout(self, value: flow.Tensor, dim: int) -> flow.Tensor:
        """Return a local matrix where W is, split in a dim where W is."""
        weight = self.weight.data
        if not weight.is_global:
            return value.to(weight.device)
        layout = [sbp.split(dim) if one == sbp.split(dim) else sbp.broadcast for one in weight.sbp]
        return flow.tensor(value.numpy(), placement=weight.placement, sbp=layout)

    def set(self, a, b) -> None:
        """Give A and B values, NumPy arrays of their shapes."""
        for parameter, value, dim in ((self.lora_a, a, 1), (self.lora_b, b, 0)):
            parameter.data = self._to_layout(flow.tensor(value, dtype=parameter.dtype), dim)

    def forward(self, input: flow.Tensor) -> flow.Tensor:
        """Return `(…, out)` of `(…, in)`."""
        y = F.linear(input, self.weight, self.bias)
        more = F.linear(F.linear(self.drop(input).to(self.lora_a.dtype), self.lora_a), self.lora_b)
        return y + (more * self.scale).to(y.dtype)

    @flow.no_grad()
    def merged(self) -> nn.Linear:
        """Return a linear layer with the sum of both matrices, in the layout of W."""
        with flow.abstract():
            made = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None)
        weight = self.weight.data
        whole = (weight.to(self.lora_a.dtype) + flow.matmul(self.lora_b, self.lora_a) * self.scale).to(weight.dtype)
        if weight.is_global:
            whole = whole.to_global(weight.placement, weight.sbp)
        made.weight = nn.Parameter(whole)
        made.bias = None if self.bias is None else nn.Parameter(self.bias.data)
        return made
