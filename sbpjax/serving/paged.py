"""Keys and values of many sequences in blocks of one pool, as a model's layers read and write them.

A sequence has a row of a table: the numbers of the blocks that hold its tokens, one after the other. Rows of other
lengths share the pool, a sequence takes blocks as it is admitted and gives them back, and two that begin alike can have
the same blocks there.

    table   [[3, 7, 0, 0],        tokens 0-15 of sequence 0 in block 3, 16-31 in block 7
             [5, 0, 0, 0]]        block 0 belongs to nobody: what is written past a sequence goes there
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import Attention


def _written(pool, new, table, start):
    """Return the pool with new rows `(B, K, T, C)` written behind `start` `(B,)` tokens of each sequence."""
    size = pool.shape[2]
    place = start[:, None] + jnp.arange(new.shape[2], dtype=start.dtype)  # (B, T)
    block = jnp.take_along_axis(table, jnp.minimum(place // size, table.shape[1] - 1), axis=1)
    block = jnp.where(place // size < table.shape[1], block, 0)
    return pool.at[block, :, place % size].set(new.transpose(0, 2, 1, 3))


def _read(pool, table):
    """Return all slots of each sequence, `(B, K, S, C)`."""
    rows, many = table.shape
    _, heads, size, width = pool.shape
    return pool[table].transpose(0, 2, 1, 3, 4).reshape(rows, heads, many * size, width)


written = flow.wrap_jax(_written, name="written_in_blocks")
read = flow.wrap_jax(_read, name="read_of_blocks")


class Pages:
    """Where the sequences of one call lie.

    Attributes:
        table: `(B, M)`, the blocks of each sequence.
        start: `(B,)`, how many tokens each has before this call.
    """

    table: flow.Tensor
    start: flow.Tensor


class PagedKeyValues(nn.Module):
    """The keys and values of one layer, in place of `models.layers.KeyValues`.

    Args:
        layer: the layer.
        blocks: how many blocks there are.
        size: tokens in a block.
        pages: where the sequences of a call lie.
    """

    k: flow.Tensor
    v: flow.Tensor

    def __init__(self, layer: Attention, blocks: int, size: int, pages: Pages):
        super().__init__()
        shape = (blocks, layer.kv_heads, size, layer.head_dim)
        self._pages = pages
        self.register_buffer("k", flow.zeros(shape, dtype=layer.k.weight.dtype))
        self.register_buffer("v", flow.zeros(shape, dtype=layer.k.weight.dtype))

    def extend(self, k: flow.Tensor, v: flow.Tensor, at: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
        """Put keys and values `(B, K, T, C)` behind those of their sequences, and return those of all slots."""
        table, start = self._pages.table, self._pages.start
        found = []
        for pool, new in ((self.k, k), (self.v, v)):
            made = written(pool, new.to(pool.dtype), table, start)
            pool.copy_(made)
            found.append(read(made, table))
        return found[0], found[1]

    @property
    def bytes(self) -> int:
        """How much memory the blocks take."""
        return sum(t.numel() * t.element_size() for t in (self.k, self.v))


def caches_of(model: nn.Module, blocks: int, size: int, pages: Pages) -> nn.ModuleList:
    """Return caches for all layers of a model, of so many blocks; the first one is nobody's."""
    layers = [m for m in model.modules() if isinstance(m, Attention)]
    return nn.ModuleList(PagedKeyValues(layer, blocks, size, pages) for layer in layers)


class PagedStep(nn.Graph):
    """Read the next tokens of some sequences, and choose the one behind each.

    Args:
        model: of tokens, with caches.
        caches: of its layers, see `caches_of`.
        pages: those that the caches look at.
        size: tokens in a block.
    """

    def __init__(self, model: nn.Module, caches: nn.ModuleList, pages: Pages, size: int):
        super().__init__()
        self.model, self.caches, self.pages, self.size = model, caches, pages, size
        self.config.enable_block_scan(False)

    @flow.no_grad()
    def build(
        self, tokens: flow.Tensor, table: flow.Tensor, start: flow.Tensor, count: flow.Tensor, heat: flow.Tensor
    ) -> flow.Tensor:
        """Return the next token `(B,)`.

        Args:
            tokens: `(B, T)`, of which `count` are tokens and the rest padding behind them.
            table: `(B, M)`, the blocks of each sequence.
            start: `(B,)`, how many tokens were read before.
            count: `(B,)`; with several rows T is 1.
            heat: `(B,)`, the temperature; 0 takes the likeliest token.
        """
        self.pages.table, self.pages.start = table, start
        slots, length = table.shape[1] * self.size, tokens.shape[1]
        places = flow.arange(length)
        positions = start[:, None] + flow.minimum(places[None, :], count[:, None] - 1)
        present = flow.arange(slots)[None, :] < (start + count)[:, None]
        # A chunk is of one sequence, and its queries read what is before each. One token of each of many reads all that
        # is present: seen from the last slot nothing lies ahead.
        at = start[0] if length > 1 else flow.full_like(start[0], slots - 1)
        logits = self.model(tokens, present.long(), positions, list(self.caches), at)  # (B, T, V)
        last = logits.gather(1, (count - 1)[:, None, None].expand(-1, 1, logits.shape[2]))[:, 0].float()
        likeliest = last.argmax(-1)
        noise = -(-flow.rand_like(last).clamp(min=1e-20).log()).log()
        drawn = (last / heat.clamp(min=1e-6)[:, None] + noise).argmax(-1)
        return flow.where(heat > 0, drawn, likeliest)


def numbers(values) -> flow.Tensor:
    """Return whole numbers as a tensor."""
    return flow.from_numpy(np.asarray(values, np.int64))
