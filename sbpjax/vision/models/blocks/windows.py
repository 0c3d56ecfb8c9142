"""Windows of feature maps for Swin: partition, shifts, masks, and attention with a relative position bias.

Every second block moves the map by half a window first, so that edges come into the middle. Then the last window of a
row has tokens of both ends of the map, which must not see each other: `shifted_window_mask`. Shapes: W windows, N
tokens each.
"""

from __future__ import annotations

import math

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F


def cut(x: flow.Tensor, window: tuple[int, int]) -> flow.Tensor:
    """Return `(B, windows, tokens, D)` of a map `(B, H, W, D)`, row by row.

    Args:
        x: the map; its height and width are multiples of the window's.
        window: height and width of a window.

    Example:
        >>> from sbpjax.vision.models.blocks import windows
        >>> windows.cut(flow.zeros(2, 4, 6, 8), (2, 3)).shape
        sbpjax.Size([2, 4, 6, 8])
    """
    batch, height, width, depth = x.shape
    rows, columns = window
    x = x.reshape(batch, height // rows, rows, width // columns, columns, depth)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, -1, rows * columns, depth)


def join_windows(x: flow.Tensor, window: tuple[int, int], size: tuple[int, int]) -> flow.Tensor:
    """Return the map `(B, H, W, D)` of windows `(B, windows, tokens, D)`: the inverse of `cut`.

    Args:
        x: the windows.
        window: height and width of a window.
        size: H and W.
    """
    (rows, columns), (height, width) = window, size
    x = x.reshape(x.shape[0], height // rows, width // columns, rows, columns, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(x.shape[0], height, width, -1)


def shifted_window_mask(size: tuple[int, int], window: tuple[int, int], shift: tuple[int, int]) -> np.ndarray:
    """Return `(windows, tokens, tokens)`: 0 where one token may see another, else -100.

    Args:
        size: height and width of the map, multiples of the window's.
        window: height and width of a window.
        shift: by how much the map was moved up and to the left.

    Example:
        >>> from sbpjax.vision.models.blocks import windows
        >>> windows.moved_mask((1, 4), (1, 2), (0, 1))[1].tolist()
        [[0.0, -100.0], [-100.0, 0.0]]
    """
    region = np.zeros(size)
    for dim in (0, 1):
        place = np.arange(size[dim])
        part = (place >= size[dim] - window[dim]).astype(int) + (place >= size[dim] - shift[dim])
        part = part if shift[dim] else np.zeros_like(part)
        region += 3 ** (1 - dim) * (part[:, None] if dim == 0 else part[None])
    (rows, columns), (height, width) = window, size
    tokens = region.reshape(height // rows, rows, width // columns, columns).transpose(0, 2, 1, 3)
    tokens = tokens.reshape(-1, rows * columns)
    return np.where(tokens[:, None] == tokens[:, :, None], 0.0, -100.0).astype(np.float32)


def offsets(window: tuple[int, int]) -> np.ndarray:
    """Return the distance of each pair of tokens of a window, as one number from 0: `(tokens, tokens)`.

    Args:
        window: height and width.
    """
    rows, columns = (axis.ravel() for axis in np.mgrid[: window[0], : window[1]])
    down = rows[:, None] - rows[None] + window[0] - 1
    right = columns[:, None] - columns[None] + window[1] - 1
    return down * (2 * window[1] - 1) + right


class WindowAttention(nn.Module):
    """Attention whose bias is a row of a table, one for each distance of two tokens (Swin v1).

    Args:
        width: D.
        heads: attention heads.
        window: height and width of a window.

    Example:
        >>> from sbpjax.vision.models.blocks.windows import WindowAttention
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
    """Cosine attention whose bias is a small network of the distance (Swin v2).

    Args:
        width: D.
        heads: attention heads.
        window: height and width of a window.

    Example:
        >>> from sbpjax.vision.models.blocks.windows import CosineWindowAttention
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
