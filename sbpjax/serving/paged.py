"""Paged key-value cache: block tables, and the graph steps that read and write them.

A sequence has a row of a table: the numbers of the blocks that hold its tokens, in order. Sequences of different
lengths share the pool, a sequence takes blocks on admission and releases them at its end, and sequences with a common
prefix can share its blocks.

    table   [[3, 7, 0, 0],        tokens 0-15 of sequence 0 in block 3, 16-31 in block 7
             [5, 0, 0, 0]]        block 0 has no owner: writes past the end of a sequence go there
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import Attention

PACKED = 4  # columns of a packed call before its table: start, count, temperature, seed


def _write_rows(pool, new, table, start):
    """Return the pool with new rows `(B, K, T, C)` written after `start` `(B,)` tokens of each sequence."""
    size = pool.shape[2]
    place = start[:, None] + jnp.arange(new.shape[2], dtype=start.dtype)  # (B, T)
    block = jnp.take_along_axis(table, jnp.minimum(place // size, table.shape[1] - 1), axis=1)
    block = jnp.where(place // size < table.shape[1], block, 0)
    return pool.at[block, :, place % size].set(new.transpose(0, 2, 1, 3))


def _read(pool, table):
    """Return all slots of each sequence, `(B, K, S, C)`."""
    rows, many = table.shape
    _, heads, size, width = pool.shape

    def of_head(blocks):  # (N, size, C)
        return blocks.at[table].get(mode="promise_in_bounds")  # the engine's own numbers

    # Head by head the slots of a sequence come out one after the other. Gathered with all their heads, blocks would be
    # copied once more to bring the heads to the front: a third of a step of a small model.
    found = jax.vmap(of_head, in_axes=1, out_axes=1)(pool)  # (B, K, M, size, C)
    return found.reshape(rows, heads, many * size, width)


def _largest(logits):
    """Return the index of the first largest logit of each row; on CPUs `argmax` takes twice as long."""
    most = logits.max(axis=-1, keepdims=True)
    places = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
    # Of a row of NaN none equals the largest.
    found = jnp.where(logits == most, places, logits.shape[-1] - 1).min(axis=-1)
    return found.astype(jnp.int64)


def _chosen(logits, heat, seed):
    """Return a token `(B,)` of logits `(B, V)`: the argmax, or a sample where the temperature is above 0."""
    likeliest = _largest(logits)

    def draw():
        key = jax.random.wrap_key_data(jnp.stack([seed >> 32, seed]).astype(jnp.uint32), impl="threefry2x32")
        # The largest of logits with Gumbel noise is a sample of their softmax.
        warm = logits / jnp.maximum(heat, 1e-6)[:, None] + jax.random.gumbel(key, logits.shape, logits.dtype)
        return jnp.where(heat > 0, _largest(warm), likeliest)

    # Noise for a whole vocabulary costs as much as a small model: only where a temperature is set.
    return jax.lax.cond(jnp.any(heat > 0), draw, lambda: likeliest)


written = flow.wrap_jax(_write_rows, name="written_in_blocks")
read = flow.wrap_jax(_read, name="read_of_blocks")
chosen = flow.wrap_jax(_chosen, name="chosen_token")


class Pages:
    """Block tables and context lengths of one call.

    Attributes:
        table: `(B, M)`, the blocks of each sequence.
        start: `(B,)`, the number of tokens before this call.
    """

    table: flow.Tensor
    start: flow.Tensor


class PagedKeyValues(nn.Module):
    """Keys and values of one layer, in place of `models.layers.KeyValues`.

    Args:
        layer: the layer; a split of its heads of keys over ranks divides the pool too.
        blocks: the number of blocks.
        size: tokens in a block.
        pages: the block tables of a call.
    """

    keys: flow.Tensor
    values: flow.Tensor

    def __init__(self, layer: Attention, blocks: int, size: int, pages: Pages):
        super().__init__()
        weight = layer.k.weight
        shape = (blocks, layer.kv_heads, size, layer.head_dim)
        where = {}
        if weight.is_global:
            heads = [flow.sbp.split(1) if s == flow.sbp.split(0) else flow.sbp.broadcast for s in weight.sbp]
            where = {"placement": weight.placement, "sbp": heads}
        self._pages = pages
        self.register_buffer("keys", flow.zeros(shape, dtype=layer.cache_dtype, **where))
        self.register_buffer("values", flow.zeros(shape, dtype=layer.cache_dtype, **where))

    def extend(self, k: flow.Tensor, v: flow.Tensor, at: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
        """Write keys and values `(B, K, T, C)` after those of their sequences, and return those of all slots."""
        return self._extend_pool(self.keys, k), self._extend_pool(self.values, v)

    def _extend_pool(self, pool: flow.Tensor, new: flow.Tensor) -> flow.Tensor:
        pages = self._pages
        made = written(pool, new.to(pool.dtype), pages.table, pages.start)
        pool.copy_(made)
        return read(made, pages.table)

    @property
    def bytes(self) -> int:
        """Memory of the blocks in bytes, on all devices together."""
        return sum(pool.numel() * pool.element_size() for pool in (self.keys, self.values))


def caches_of(model: nn.Module, blocks: int, size: int, pages: Pages) -> nn.ModuleList:
    """Return caches for all layers of a model, with a number of blocks; the first one has no owner."""
    layers = [m for m in model.modules() if isinstance(m, Attention)]
    return nn.ModuleList(PagedKeyValues(layer, blocks, size, pages) for layer in layers)


class PagedStep(nn.Graph):
    """Read the next tokens of some sequences, and choose the following token of each.

    Args:
        model: of tokens, with caches.
        caches: of its layers, see `caches_of`.
        pages: those of the caches.
        size: tokens in a block.
        length: T, tokens of each sequence in a call.
    """

    def __init__(self, model: nn.Module, caches: nn.ModuleList, pages: Pages, size: int, length: int):
        super().__init__()
        self.model, self.caches, self.pages, self.size, self.length = model, caches, pages, size, length
        self.config.enable_block_scan(False)

    @flow.no_grad()
    def build(self, packed: flow.Tensor) -> flow.Tensor:
        """Return the next token `(B,)`.

        Args:
            packed: `(B, T + 4 + M)` whole numbers, see `pack_inputs`.
        """
        length = self.length
        tokens, table = packed[:, :length], packed[:, length + PACKED :]
        start, count, heat, seed = (packed[:, length + i] for i in range(PACKED))
        self.pages.table, self.pages.start = table, start
        slots = table.shape[1] * self.size
        places = flow.arange(length, **_where(packed))
        positions = start[:, None] + flow.minimum(places[None, :], count[:, None] - 1)
        present = flow.arange(slots, **_where(packed))[None, :] < (start + count)[:, None]
        # Queries of a piece of a prompt attend to earlier positions only. A row of one token attends to all that is
        # present: from the last slot the causal mask hides nothing.
        at = start if length > 1 else flow.full_like(start[0], slots - 1)
        logits = self.model(tokens, present.long(), positions, list(self.caches), at, count - 1)[:, 0]  # (B, V)
        return chosen(logits.float(), heat.float() / 1e6, seed[0])


def _where(tensor: flow.Tensor) -> dict:
    return {"placement": tensor.placement, "sbp": tensor.sbp} if tensor.is_global else {}


def pack_inputs(
    tokens: np.ndarray, told: list[tuple[int, int, float]], tables: list[list[int]], width: int
) -> np.ndarray:
    """Return all inputs of a call as one array, since each array is a separate device transfer.

    Args:
        tokens: `(B, T)`.
        told: for each sequence the number of tokens read before, the number of tokens among the T (the rest is
            padding), and the temperature.
        tables: the blocks of each sequence.
        width: M, the most blocks of a sequence.
    """
    rows, length = tokens.shape
    made = np.zeros((rows, length + PACKED + width), np.int64)
    made[:, :length], made[:, length + 1] = tokens, 1
    for row, ((start, count, heat), table) in enumerate(zip(told, tables)):
        made[row, length : length + 3] = start, count, max(round(heat * 1e6), heat > 0)
        made[row, length + PACKED : length + PACKED + len(table)] = table
    return made
