"""The models of `benchmarks/gpu.py` as one writes them in PyTorch today: flash attention, fused kernels, no dropout.

Parameters have the names and shapes that make their number equal to that of our models; `benchmarks.gpu` compiles them
with `torch.compile`. Shapes at the line ends: B batch, T positions, D width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class GPT2(nn.Module):
    """GPT-2 with a tied output.

    Args:
        vocab: tokens.
        length: positions.
        width: of the stream.
        layers: blocks.
        heads: attention heads.
    """

    def __init__(self, vocab: int, length: int, width: int, layers: int, heads: int):
        super().__init__()
        self.heads = heads
        self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(length, width)
        names = ("norm1", "qkv", "out", "norm2", "up", "down")

        def made():
            return (
                nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width),
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width),
            )  # fmt: skip

        self.blocks = nn.ModuleList(nn.ModuleDict(dict(zip(names, made()))) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for p in self.parameters():
            nn.init.normal_(p, std=0.02) if p.ndim > 1 else None

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean cross entropy."""
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]  # (B, T, D)
        for block in self.blocks:
            q, k, v = block["qkv"](block["norm1"](x)).chunk(3, -1)
            q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + block["out"](y.transpose(1, 2).flatten(2))
            x = x + block["down"](F.gelu(block["up"](block["norm2"](x)), approximate="tanh"))
        logits = F.linear(self.norm(x), self.token.weight)  # (B, T, V)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Llama(nn.Module):
    """Llama: RMS norms, rotary positions, grouped heads, SwiGLU, a tied output.

    Args:
        vocab: tokens.
        width: of the stream.
        hidden: of the MLP.
        layers: blocks.
        heads: of queries.
        kv_heads: of keys and values.
    """

    def __init__(self, vocab: int, width: int, hidden: int, layers: int, heads: int, kv_heads: int):
        super().__init__()
        self.size = width // heads
        self.token = nn.Embedding(vocab, width)
        kv = self.size * kv_heads

        def block():
            plain = {"bias": False}
            return nn.ModuleDict({
                "norm1": nn.RMSNorm(width, eps=1e-5), "q": nn.Linear(width, width, **plain),
                "k": nn.Linear(width, kv, **plain), "v": nn.Linear(width, kv, **plain),
                "out": nn.Linear(width, width, **plain), "norm2": nn.RMSNorm(width, eps=1e-5),
                "gate": nn.Linear(width, hidden, **plain), "up": nn.Linear(width, hidden, **plain),
                "down": nn.Linear(hidden, width, **plain),
            })  # fmt: skip

        self.blocks = nn.ModuleList(block() for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        for p in self.parameters():
            nn.init.normal_(p, std=0.02) if p.ndim > 1 else None

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the mean cross entropy."""
        x = self.token(tokens)  # (B, T, D)
        steps = torch.arange(tokens.shape[1], device=x.device, dtype=torch.float32)
        rates = 500000.0 ** (-torch.arange(0, self.size, 2, device=x.device) / self.size)
        angles = torch.outer(steps, rates).repeat(1, 2)
        cos, sin = angles.cos(), angles.sin()

        def rotated(y):
            first, second = y.chunk(2, -1)
            return (y * cos + torch.cat((-second, first), -1) * sin).to(y.dtype)

        for block in self.blocks:
            y = block["norm1"](x)
            q, k, v = (block[n](y).unflatten(-1, (-1, self.size)).transpose(1, 2) for n in ("q", "k", "v"))
            y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
            x = x + block["out"](y.transpose(1, 2).flatten(2))
            y = block["norm2"](x)
            x = x + block["down"](F.silu(block["gate"](y)) * block["up"](y))
        logits = F.linear(self.norm(x), self.token.weight)  # (B, T, V)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
