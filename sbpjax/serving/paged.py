"""Paged key-value cache: block tables, and the graph steps that read and write them.

A sequence has a row of a table: the numbers of the blocks that hold its tokens, in order. Sequences of different
lengths share the pool, a sequence takes blocks on admission and releases them at its end, and sequences with a common
prefix can share its blocks.

    block_tables   [[3, 7, 0, 0],        tokens 0-15 of sequence 0 in block 3, 16-31 in block 7
                    [5, 0, 0, 0]]        block 0 has no owner: writes past the end of a sequence go there

`Blocks` allocates blocks, with reference counts and prefix sharing:

    blocks = Blocks(9, size=4)
    mine, known = blocks.take([1, 2, 3, 4, 5], tokens=8)        # two blocks, nothing known yet
    blocks.publish([1, 2, 3, 4, 5], mine)                       # block 0 of the prompt is full: others may read it
    others, known = blocks.take([1, 2, 3, 4, 9], tokens=8)      # the same first block; known == 4 tokens
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import Attention


class Blocks:
    """Blocks of a pool; block 0 has no owner.

    Args:
        count: the number of blocks, block 0 included.
        size: tokens in each.
    """

    def __init__(self, count: int, size: int):
        self.count, self.size = count, size
        self._free = list(range(count - 1, 0, -1))
        self._users: dict[int, int] = {}
        self._of: dict[tuple, int] = {}  # all tokens from the first to the end of a block: that block
        self._holds: dict[int, tuple] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()  # unused, but with known contents; the longest idle first

    @property
    def used(self) -> int:
        """Number of blocks in use."""
        return len(self._users)

    def needed_blocks(self, tokens: int) -> int:
        """Return the number of blocks for a number of tokens."""
        return -(-tokens // self.size)

    def take(self, prompt: Sequence[int], tokens: int) -> tuple[list[int], int] | None:
        """Return blocks for a sequence, and how many of its first tokens are in them already; None if too few are left.

        Args:
            prompt: its first tokens; at least one of them remains to be computed.
            tokens: its maximum number of tokens.
        """
        known: list[int] = []
        for end in range(self.size, len(prompt), self.size):
            block = self._of.get(tuple(prompt[:end]))
            if block is None:
                break
            known.append(block)
        more = self.needed_blocks(tokens) - len(known)
        spare = len(self._free) + sum(block not in known for block in self._idle)
        if more > spare:
            return None
        for block in known:
            self._use(block)
        made = []
        for _ in range(more):
            block = self._free.pop() if self._free else self._forget()
            self._use(block)
            made.append(block)
        return [*known, *made], len(known) * self.size

    def publish(self, prompt: Sequence[int], blocks: Sequence[int]) -> None:
        """Let other sequences read the full blocks of a prompt that was read."""
        for i in range(len(prompt) // self.size):
            key = tuple(prompt[: (i + 1) * self.size])
            if key not in self._of and blocks[i] not in self._holds:
                self._of[key], self._holds[blocks[i]] = blocks[i], key

    def release(self, blocks: Sequence[int]) -> None:
        """Release the blocks of a sequence."""
        for block in blocks:
            self._users[block] -= 1
            if not self._users[block]:
                del self._users[block]
                if block in self._holds:
                    self._idle[block] = None
                else:
                    self._free.append(block)

    def _use(self, block: int) -> None:
        self._idle.pop(block, None)
        self._users[block] = self._users.get(block, 0) + 1

    def _forget(self) -> int:
        block, _ = self._idle.popitem(last=False)
        del self._of[self._holds.pop(block)]
        return block


SCALARS = 4  # columns before the block table: context length, query length, temperature, seed


def _write_blocks(pool, new, block_tables, context_lens):
    """Return the pool with new rows `(B, K, T, C)` written after the context of each sequence."""
    size = pool.shape[2]
    place = context_lens[:, None] + jnp.arange(new.shape[2], dtype=context_lens.dtype)  # (B, T)
    block = jnp.take_along_axis(block_tables, jnp.minimum(place // size, block_tables.shape[1] - 1), axis=1)
    block = jnp.where(place // size < block_tables.shape[1], block, 0)
    return pool.at[block, :, place % size].set(new.transpose(0, 2, 1, 3))


def _read_blocks(pool, block_tables):
    """Return all slots of each sequence, `(B, K, S, C)`."""
    rows, max_blocks = block_tables.shape
    _, heads, size, head_dim = pool.shape

    def of_head(blocks):  # (N, size, C)
        return blocks.at[block_tables].get(mode="promise_in_bounds")  # the engine's own numbers

    # Head by head the slots of a sequence come out one after the other. Gathered with all their heads, blocks would be
    # copied once more to bring the heads to the front: a third of a step of a small model.
    found = jax.vmap(of_head, in_axes=1, out_axes=1)(pool)  # (B, K, M, size, C)
    return found.reshape(rows, heads, max_blocks * size, head_dim)


def _largest(logits):
    """Return the index of the first largest logit of each row; on CPUs `argmax` takes twice as long."""
    largest = logits.max(axis=-1, keepdims=True)
    places = jax.lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
    # Of a row of NaN none equals the largest.
    found = jnp.where(logits == largest, places, logits.shape[-1] - 1).min(axis=-1)
    return found.astype(jnp.int64)


def _sample_tokens(logits, temperature, seed):
    """Return a token `(B,)` of logits `(B, V)`: the argmax, or a sample where the temperature is above 0."""
    likeliest = _largest(logits)

    def draw():
        key = jax.random.wrap_key_data(jnp.stack([seed >> 32, seed]).astype(jnp.uint32), impl="threefry2x32")
        # The largest of logits with Gumbel noise is a sample of their softmax.
        warm = logits / jnp.maximum(temperature, 1e-6)[:, None] + jax.random.gumbel(key, logits.shape, logits.dtype)
        return jnp.where(temperature > 0, _largest(warm), likeliest)

    # Noise for a whole vocabulary costs as much as a small model: only where a temperature is set.
    return jax.lax.cond(jnp.any(temperature > 0), draw, lambda: likeliest)


write_blocks = flow.wrap_jax(_write_blocks, name="write_blocks")
read_blocks = flow.wrap_jax(_read_blocks, name="read_blocks")
sample_tokens = flow.wrap_jax(_sample_tokens, name="sample_tokens")


class BlockTables:
    """Block tables and context lengths of one call.

    Attributes:
        block_tables: `(B, M)`, the blocks of each sequence.
        context_lens: `(B,)`, the context length: the number of tokens in the cache before this call.
    """

    block_tables: flow.Tensor
    context_lens: flow.Tensor


class PagedKeyValues(nn.Module):
    """Keys and values of one layer, in place of `models.layers.KeyValues`.

    Args:
        layer: the layer; a split of its heads of keys over ranks divides the pool too.
        blocks: the number of blocks.
        size: tokens in a block.
        tables: the block tables of a call.
    """

    keys: flow.Tensor
    values: flow.Tensor

    def __init__(self, layer: Attention, blocks: int, size: int, tables: BlockTables):
        super().__init__()
        weight = layer.k.weight
        shape = (blocks, layer.kv_heads, size, layer.head_dim)
        where = {}
        if weight.is_global:
            heads = [flow.sbp.split(1) if s == flow.sbp.split(0) else flow.sbp.broadcast for s in weight.sbp]
            where = {"placement": weight.placement, "sbp": heads}
        self._tables = tables
        self.register_buffer("keys", flow.zeros(shape, dtype=layer.cache_dtype, **where))
        self.register_buffer("values", flow.zeros(shape, dtype=layer.cache_dtype, **where))

    def extend(self, k: flow.Tensor, v: flow.Tensor, cache_position: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
        """Write keys and values `(B, K, T, C)` after those of their sequences, and return those of all slots."""
        return self._extend_pool(self.keys, k), self._extend_pool(self.values, v)

    def _extend_pool(self, pool: flow.Tensor, new: flow.Tensor) -> flow.Tensor:
        tables = self._tables
        made = write_blocks(pool, new.to(pool.dtype), tables.block_tables, tables.context_lens)
        pool.copy_(made)
        return read_blocks(made, tables.block_tables)

    @property
    def bytes(self) -> int:
        """Memory of the blocks in bytes, on all devices together."""
        return sum(pool.numel() * pool.element_size() for pool in (self.keys, self.values))


def caches_of(model: nn.Module, blocks: int, size: int, tables: BlockTables) -> nn.ModuleList:
    """Return caches for all layers of a model, with a number of blocks; the first one has no owner."""
    layers = [m for m in model.modules() if isinstance(m, Attention)]
    return nn.ModuleList(PagedKeyValues(layer, blocks, size, tables) for layer in layers)


class PagedStep(nn.Graph):
    """Decode step: read the next tokens of some sequences, and sample the following token of each.

    Args:
        model: of tokens, with caches.
        caches: of its layers, see `caches_of`.
        tables: the block tables of the caches.
        size: tokens in a block.
        length: T, tokens of each sequence in a call.
    """

    def __init__(self, model: nn.Module, caches: nn.ModuleList, tables: BlockTables, size: int, length: int):
        super().__init__()
        self.model, self.caches, self.tables, self.size, self.length = model, caches, tables, size, length
        self.config.enable_block_scan(False)

    @flow.no_grad()
    def build(self, inputs: flow.Tensor) -> flow.Tensor:
        """Return the next token `(B,)`.

        Args:
            inputs: `(B, T + 4 + M)` whole numbers, see `pack_inputs`.
        """
        length = self.length
        input_ids, block_tables = inputs[:, :length], inputs[:, length + SCALARS :]
        context_lens, query_lens, temperature, seed = (inputs[:, length + i] for i in range(SCALARS))
        self.tables.block_tables, self.tables.context_lens = block_tables, context_lens
        slots = block_tables.shape[1] * self.size
        places = flow.arange(length, **_layout_options(inputs))
        position_ids = context_lens[:, None] + flow.minimum(places[None, :], query_lens[:, None] - 1)
        attention_mask = flow.arange(slots, **_layout_options(inputs))[None, :] < (context_lens + query_lens)[:, None]
        # Queries of a piece of a prompt attend to earlier positions only. A row of one token attends to all that is
        # present: from the last slot the causal mask hides nothing.
        cache_position = context_lens if length > 1 else flow.full_like(context_lens[0], slots - 1)
        logits = self.model(
            input_ids, attention_mask.long(), position_ids, list(self.caches), cache_position, query_lens - 1
        )[:, 0]  # (B, V)
        return sample_tokens(logits.float(), temperature.float() / 1e6, seed[0])


def _layout_options(tensor: flow.Tensor) -> dict:
    return {"placement": tensor.placement, "sbp": tensor.sbp} if tensor.is_global else {}


def pack_inputs(
    input_ids: np.ndarray, lengths: list[tuple[int, int, float]], block_tables: list[list[int]], max_blocks: int
) -> np.ndarray:
    """Return all inputs of a call as one array, since each array is a separate device transfer.

    Args:
        input_ids: `(B, T)`.
        lengths: for each sequence the context length, the number of its tokens among the T (the rest is padding), and
            the temperature.
        block_tables: the blocks of each sequence.
        max_blocks: M, the most blocks of a sequence.
    """
    rows, length = input_ids.shape
    made = np.zeros((rows, length + SCALARS + max_blocks), np.int64)
    made[:, :length], made[:, length + 1] = input_ids, 1
    for row, ((context_len, query_len, temperature), blocks) in enumerate(zip(lengths, block_tables)):
        made[row, length : length + 3] = context_len, query_len, max(round(temperature * 1e6), temperature > 0)
        made[row, length + SCALARS : length + SCALARS + len(blocks)] = blocks
    return made
