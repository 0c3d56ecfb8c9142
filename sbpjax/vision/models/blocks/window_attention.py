"""Window attention of Swin, with relative position bias. Shapes: W windows, N tokens of a window."""

from __future__ import annotations

import math

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

from .windows import offsets


class WindowAttention(nn.Module):
    """Attention whose bias is a row of a table, one for each distance of two tokens (Swin v1).

    Args:
        width: D.
        heads: attention heads.
        window: height and width of a window.

    Example:
        >>> from sbpjax.vision.models.blocks.window_attention import WindowAttention
        >>> WindowAttention(8, 2, (2, 2))(flow.zeros(1, 9, 4, 8)).shape
        sbpjax.Size([1, 9, 4, 8])
    """

    def __init__(self, width: int, heads: int, window: tuple[int, int]):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=self._has_bias())
        self.proj = nn.Linear(width, width)
        self.register_buffer("offsets", flow.tensor(offsets(window).ravel()), persistent=False)
        self._make_bias(width, window)

    def _has_bias(self) -> bool:
        return True

    def _make_bias(self, width: int, window: tuple[int, int]) -> None:
        distances = (2 * window[0] - 1) * (2 * window[1] - 1)
        self.relative_position_bias_table = nn.Parameter(flow.zeros(distances, self.heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)

    def _table(self) -> flow.Tensor:
        """Return the bias of each distance and head: `(distances, heads)`."""
        return self.relative_position_bias_table

    def _project_qkv(self, x: flow.Tensor) -> flow.Tensor:
        return self.qkv(x)

    def _attend(self, q: flow.Tensor, k: flow.Tensor, v: flow.Tensor, bias: flow.Tensor) -> flow.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)

    def forward(self, x: flow.Tensor, mask: flow.Tensor | None = None) -> flow.Tensor:
        """Return `(B, W, N, D)`.

        Args:
            x: `(B, W, N, D)`.
            mask: `(W, N, N)`, added to the logits.
        """
        batch, count, tokens, width = x.shape
        qkv = self._project_qkv(x).reshape(batch, count, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(3, 0, 1, 4, 2, 5)  # (B, W, heads, N, C) each
        bias = self._table()[self.offsets].reshape(tokens, tokens, self.heads).permute(2, 0, 1)  # (heads, N, N)
        bias = bias if mask is None else bias + mask.unsqueeze(1)  # (W, heads, N, N)
        y = self._attend(q, k, v, bias)
        return self.proj(y.transpose(2, 3).reshape(batch, count, tokens, width))


class CosineWindowAttention(WindowAttention):
    """Attention by the angle of queries and keys, whose bias is a small network of the distance (Swin v2).

    Args:
        width: D.
        heads: attention heads.
        window: height and width of a window.

    Example:
        >>> from sbpjax.vision.models.blocks.window_attention import CosineWindowAttention
        >>> CosineWindowAttention(8, 2, (2, 2))(flow.zeros(1, 9, 4, 8)).shape
        sbpjax.Size([1, 9, 4, 8])
    """

    def _has_bias(self) -> bool:
        return False  # keys have none

    def _make_bias(self, width: int, window: tuple[int, int]) -> None:
        self.logit_scale = nn.Parameter(flow.full((self.heads, 1, 1), math.log(10)))
        self.q_bias = nn.Parameter(flow.zeros(width))
        self.v_bias = nn.Parameter(flow.zeros(width))
        self.cpb_mlp = nn.Sequential(nn.Linear(2, 512), nn.ReLU(), nn.Linear(512, self.heads, bias=False))
        steps = [8 * np.arange(1 - size, size) / max(size - 1, 1) for size in window]
        steps = [np.sign(s) * np.log2(np.abs(s) + 1) / np.log2(8) for s in steps]
        distances = np.stack(np.meshgrid(*steps, indexing="ij"), -1).reshape(-1, 2).astype(np.float32)
        self.register_buffer("distances", flow.tensor(distances), persistent=False)

    def _table(self) -> flow.Tensor:
        """Return the bias of each distance and head: `(distances, heads)`."""
        return 16 * self.cpb_mlp(self.distances).sigmoid()

    def _project_qkv(self, x: flow.Tensor) -> flow.Tensor:
        bias = flow.cat([self.q_bias, flow.zeros_like(self.v_bias), self.v_bias])
        return F.linear(x, self.qkv.weight, bias)

    def _attend(self, q: flow.Tensor, k: flow.Tensor, v: flow.Tensor, bias: flow.Tensor) -> flow.Tensor:
        q = F.normalize(q, dim=-1) * self.logit_scale.clamp(max=math.log(100)).exp()
        return F.scaled_dot_product_attention(q, F.normalize(k, dim=-1), v, attn_mask=bias, scale=1.0)
