"""Ring attention: queries and keys are split along the sequence, and the keys travel around the ranks.

On 4 ranks each has a quarter of the queries, keys and values. In each of four steps a rank attends to the keys that it
has, while it sends them on to the next one and receives those of the rank before (Liu et al., Ring Attention, 2023);
results of steps are joined by their lse (`_core.ops.attention.parts`). In the backward the gradients of keys and
values travel with them, and one step more to come home. A rank holds two parts of the keys at a time, never all.

Under a causal mask the first rank would have one part to read and the last one four. So rows are exchanged before and
after: of 8 half parts rank r takes r and 7 - r, *zigzag*. Then every rank has as much to do in every step:

    rank     its halves    reads, step by step
    0        0 7           own      3 4 by 7     2 5 by 7     1 6 by 7
    1        1 6           own      0 by 1, 6    3 4 by 6     2 5 by 6
    2        2 5           own      1 by 2, 5    0 by 2, 5    3 4 by 5
    3        3 4           own      2 by 3, 4    1 by 3, 4    0 by 3, 4

Past keys are their first half for both halves of the queries, later ones are both halves for the second half of the
queries: all of it visible, so that a kernel needs no mask but in the first step.

With a mask, segments or a window the parts stay in order, and numbers of queries and keys determine the mask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from sbpjax._core.ops.attention import parts as parts
from sbpjax._core.ops.attention.blocks import Part
from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores
from sbpjax._core.ops.promote import compute_dtype
from sbpjax.sbp import even_split


@dataclass(frozen=True)
class Ring:
    """The ranks of one axis.

    Attributes:
        name: of the axis.
        size: the number of ranks.
        index: of this rank, traced.
    """

    name: str
    size: int
    index: Any

    def on(self, arrays: tuple) -> tuple:
        """Return the arrays of the previous rank, which sends them to this one."""
        if self.size == 1:
            return arrays
        pairs = [(i, (i + 1) % self.size) for i in range(self.size)]
        return tuple(lax.ppermute(x, self.name, pairs) for x in arrays)

    def run_rounds(self, keys: tuple, state, step: Callable):
        """Return `state` and the sums after a round.

        Args:
            keys: arrays that go round, each sent on while the step that reads it runs.
            state: the values that stay on the rank.
            step: ``(state, keys, sums, source) -> state, sums`` for the keys of rank ``source``, which is None for the
                rank's own, as are the sums then; sums go with the keys, and return to their rank after the last step.
        """
        if self.size == 1:
            return step(state, keys, None, None)
        ahead = self.on(keys)
        state, sums = step(state, keys, None, None)

        def body(s, carry):
            keys, sums, state = carry
            ahead = self.on(keys)
            state, sums = step(state, keys, sums, self.source(s))
            return ahead, self.on(sums), state

        carry = (ahead, self.on(sums), state)
        if self.size > 2:
            carry = lax.fori_loop(np.int32(1), np.int32(self.size - 1), body, carry)
        keys, sums, state = carry
        state, sums = step(state, keys, sums, self.source(np.int32(self.size - 1)))
        return state, self.on(sums)

    def source(self, step):
        """Return the rank whose keys this rank has in a step."""
        return (self.index - step + self.size) % self.size


class _Packed:
    """Arrays that are sent as one, side by side along their last dim.

    The forward packs keys before values, the backward values before keys: where both are in one program, XLA would
    reuse the forward's transfers in the backward, and keep all of them in between.
    """

    def __init__(self, *arrays) -> None:
        self.widths = [x.shape[-1] for x in arrays]
        self.packed = lax.concatenate(arrays, arrays[0].ndim - 1)

    def unpack(self, packed) -> Any:
        """Return the arrays in one that was sent."""
        ends = np.cumsum(self.widths).tolist()
        return [lax.slice_in_dim(packed, e - w, e, axis=packed.ndim - 1) for e, w in zip(ends, self.widths)]


def is_zigzag(mask, segments, how: Scores, queries: int, keys: int) -> bool:
    """Return whether rows are exchanged so that a causal mask gives all ranks as much to do."""
    return mask is None and segments is None and how.window == CAUSAL and queries == keys


def half_of(rows: int, size: int) -> int:
    """Return the rows of a half part of ``rows`` on ``size`` ranks; the last ones may be padding."""
    return -(-even_split.shard_size(rows, (size,)) // 2)


def exchanges(size: int) -> list[list[tuple[int, int]]]:
    """Return the ``(source, target)`` ranks of the first halves, and of the second ones, for `zigzag` order."""
    halves = ([min(c, 2 * size - 1 - c) for c in range(first, 2 * size, 2)] for first in (0, 1))
    return [list(enumerate(to)) for to in halves]


def count_exchanges(size: int) -> int:
    """Return the number of the two exchanges that move anything."""
    return sum(any(a != b for a, b in pairs) for pairs in exchanges(size))


@dataclass(frozen=True)
class _Zigzag:
    """Rows in zigzag order.

    Attributes:
        ring: the ranks.
        rows: the total number of rows.
    """

    ring: Ring
    rows: int

    @property
    def half(self) -> int:
        return half_of(self.rows, self.ring.size)

    def enter(self, x, dim: int, fill: float = 0):
        """Return half parts r and 2n - 1 - r, of n ranks, for rank r's part of the rows along a dim."""
        widths = [(0, 0)] * x.ndim
        widths[dim] = (0, 2 * self.half - x.shape[dim])
        x = jnp.pad(x, widths, constant_values=fill) if any(map(any, widths)) else x
        low, high = (
            self._send(lax.slice_in_dim(x, i * self.half, (i + 1) * self.half, axis=dim), pairs)
            for i, pairs in enumerate(exchanges(self.ring.size))
        )
        return lax.concatenate(self._swap_halves(low, high), dim)

    def leave(self, x, dim: int):
        """Return this rank's part of rows that were in zigzag order."""
        low, high = self._swap_halves(
            *(lax.slice_in_dim(x, i * self.half, (i + 1) * self.half, axis=dim) for i in (0, 1))
        )
        back = ([(b, a) for a, b in pairs] for pairs in exchanges(self.ring.size))
        x = lax.concatenate([self._send(y, pairs) for y, pairs in zip((low, high), back, strict=True)], dim)
        return lax.slice_in_dim(x, 0, even_split.shard_size(self.rows, (self.ring.size,)), axis=dim)

    def _swap_halves(self, a, b) -> list:
        """Return two halves in the other order on ranks with an odd number, whose half r is a second one."""
        odd = self.ring.index % 2 == 1
        return [jnp.where(odd, b, a), jnp.where(odd, a, b)]

    def _send(self, x, pairs):
        return lax.ppermute(x, self.ring.name, pairs) if any(a != b for a, b in pairs) else x

    def counts(self, rank):
        """Return the mask of valid rows of a rank's two half parts, bools; None if all are."""
        size = self.ring.size
        if self.rows % (2 * size) == 0:
            return None
        place = jnp.arange(self.half, dtype=np.int32)
        return jnp.concatenate([place < self._count(c) for c in (rank, 2 * size - 1 - rank)])

    def _count(self, half):
        _, count = even_split.part(self.rows, self.ring.size, half // 2)
        return jnp.where(half % 2 == 0, jnp.minimum(count, self.half), jnp.maximum(count - self.half, 0))

    def mask(self, rank, rank_of_mask: int):
        """Return `counts` as a mask of keys, or None."""
        counts = self.counts(rank)
        return None if counts is None else counts.reshape((1,) * (rank_of_mask - 1) + (-1,))


# --- forward ---------------------------------------------------------------------------------------------------------


def forward(q, k, v, mask, segments, how: Scores, kernel: str, ring: Ring, queries: int, keys: int):
    """Return this rank's part of attention and its lse, as `attention_blocks.forward`.

    Args:
        q: this rank's queries ``(*lead, G, T / n, D)``, of n ranks.
        k: its keys ``(*lead, S / n, D)``; zeros in the padding.
        v: its values, likewise.
        mask: of its queries and all keys, or None.
        segments: of its queries and of all keys, or None.
        how: options of the scores.
        kernel: which kernel, see `attention_primitive.attention`.
        ring: the ranks.
        queries: T.
        keys: S.
    """
    if is_zigzag(mask, segments, how, queries, keys):
        return _zigzag_forward(q, k, v, how, kernel, ring, queries)
    pick, both = _MaskParts(q, mask, segments, ring, queries, keys), _Packed(k, v)

    def step(state, kv, _, source):
        rank = ring.index if source is None else source
        (k, v), (mask, segments) = both.unpack(*kv), pick.extras(rank)
        found = parts.attend_part(q, k, v, mask, segments, how, kernel, pick.part(rank))
        return found if state is None else parts.join_parts(state, found), ()

    (out, lse), _ = ring.run_rounds((both.packed,), None, step)
    return parts.finish_parts(out, lse, mask, segments, how, q.dtype)


def _zigzag_forward(q, k, v, how: Scores, kernel: str, ring: Ring, rows: int):
    order = _Zigzag(ring, rows)
    half, dim, both = order.half, q.ndim - 2, _Packed(k, v)
    q, kv = order.enter(q, dim), order.enter(both.packed, k.ndim - 2)
    every = replace(how, window=EVERY_KEY)

    def attend(q, kv, mask, how):
        k, v = kv
        return parts.zero_empty_rows(*parts.bind_attention(q, k, v, mask, None, how, kernel))

    def step(state, kv, _, source):
        kv = both.unpack(*kv)
        mask = order.mask(ring.index if source is None else source, q.ndim)
        if source is None:
            return attend(q, kv, mask, how), ()

        def before():
            first = [lax.slice_in_dim(x, 0, half, axis=x.ndim - 2) for x in kv]
            return attend(q, first, None if mask is None else mask[..., :half], every)

        def behind():
            out, lse = attend(lax.slice_in_dim(q, half, 2 * half, axis=dim), kv, mask, every)
            return _pad_before(out, half, dim, 0), _pad_before(lse, half, dim, -np.inf)

        return parts.join_parts(state, lax.cond(source < ring.index, before, behind)), ()

    (out, lse), _ = ring.run_rounds((kv,), None, step)
    out, lse = parts.finish_parts(out, lse, None, None, how, q.dtype)
    return order.leave(out, dim), order.leave(lse, dim)


def _pad_before(x, rows: int, dim: int, fill: float):
    """Return an array with ``rows`` more before it along a dim."""
    widths = [(0, 0)] * x.ndim
    widths[dim] = (rows, 0)
    return jnp.pad(x, widths, constant_values=fill)


def _pad_after(x, rows: int, dim: int):
    """Return an array with ``rows`` zeros more after it along a dim."""
    widths = [(0, 0)] * x.ndim
    widths[dim] = (0, rows)
    return jnp.pad(x, widths)


class _MaskParts:
    """The parts of a mask and of segments for the keys of a rank, and their numbers."""

    def __init__(self, q, mask, segments, ring: Ring, queries: int, keys: int) -> None:
        self.ring, self.keys, self.mask, self.segments = ring, keys, mask, segments
        self.size = even_split.shard_size(keys, (ring.size,))
        self.even = even_split.even(keys, (ring.size,))
        self.row, _ = even_split.part(queries, ring.size, ring.index)
        if not self.even:  # a shorter part that is read as long as the others may reach past the end
            self.mask = mask if mask is None or mask.shape[-1] == 1 else _pad_after(mask, 1, mask.ndim - 1)
            self.segments = segments and (segments[0], _pad_after(segments[1], 1, segments[1].ndim - 1))

    def part(self, rank) -> Part:
        first, count = even_split.part(self.keys, self.ring.size, rank)
        return Part(row=self.row, key=first, keys=None if self.even else count)

    def extras(self, rank) -> Any:
        """Return the mask and the segments of the keys of a rank."""
        first = even_split.part(self.keys, self.ring.size, rank)[0]

        def of(x):
            return lax.dynamic_slice_in_dim(x, first, self.size, x.ndim - 1)

        mask = self.mask if self.mask is None or self.mask.shape[-1] == 1 else of(self.mask)
        return mask, self.segments and (self.segments[0], of(self.segments[1]))


# --- backward --------------------------------------------------------------------------------------------------------


def backward(q, k, v, mask, segments, how: Scores, kernel: str, out, lse, ct, ring: Ring, queries: int, keys: int):
    """Return this rank's part of the gradients of queries, keys and values.

    Args:
        q: as in `forward`, like the next six; zeros in the padding, as in `out` and `ct`.
        k: keys.
        v: values.
        mask: mask.
        segments: segments.
        how: options of the scores.
        kernel: which kernel.
        out: this rank's part of the output of `forward`.
        lse: likewise, inf in the padding.
        ct: the gradient of `out`.
        ring: the ranks.
        queries: T.
        keys: S.
    """
    if is_zigzag(mask, segments, how, queries, keys):
        return _zigzag_backward(q, k, v, how, kernel, out, lse, ct, ring, queries)
    pick, both = _MaskParts(q, mask, segments, ring, queries, keys), _Packed(v, k)

    def step(dq, vk, sums, source):
        rank = ring.index if source is None else source
        (v, k), (mask, segments) = both.unpack(*vk), pick.extras(rank)
        found = parts.gradients(q, k, v, mask, segments, how, kernel, pick.part(rank), out, lse, ct)
        return _add_sums(dq, sums, found)

    dq, sums = ring.run_rounds((both.packed,), None, step)
    dv, dk = both.unpack(*sums)
    return [x.astype(y.dtype) for x, y in zip((dq, dk, dv), (q, k, v), strict=True)]


def _add_sums(dq, sums, found):
    """Return sums of gradients in the wide dtype with those of one more step."""
    mine, of_keys, of_values = (x.astype(compute_dtype(x.dtype)) for x in found)
    theirs = _Packed(of_values, of_keys).packed
    return (mine, (theirs,)) if sums is None else (dq + mine, (sums[0] + theirs,))


def _zigzag_backward(q, k, v, how: Scores, kernel: str, out, lse, ct, ring: Ring, rows: int):
    order = _Zigzag(ring, rows)
    half, dim, both, of_rows = order.half, q.ndim - 2, _Packed(v, k), _Packed(q, out, ct)
    dtype, vk = q.dtype, order.enter(both.packed, k.ndim - 2)
    q, out, ct = of_rows.unpack(order.enter(of_rows.packed, dim))
    lse = order.enter(lse, dim, np.inf)
    every = replace(how, window=EVERY_KEY)

    def gradients(q, kv, mask, how, out, lse, ct):
        k, v = kv
        return parts.equation_grad(q, k, v, mask, None, how, kernel, out, lse, ct)

    def step(dq, vk, sums, source):
        kv = both.unpack(*vk)[::-1]
        mask = order.mask(ring.index if source is None else source, q.ndim)
        if source is None:
            return _add_sums(None, None, gradients(q, kv, mask, how, out, lse, ct))

        def before():
            first = [lax.slice_in_dim(x, 0, half, axis=x.ndim - 2) for x in kv]
            dq, *others = gradients(q, first, None if mask is None else mask[..., :half], every, out, lse, ct)
            return dq, *(_pad_after(x, half, x.ndim - 2) for x in others)

        def behind():
            mine, result, by, wanted = (lax.slice_in_dim(x, half, 2 * half, axis=dim) for x in (q, out, lse, ct))
            dq, *others = gradients(mine, kv, mask, every, result, by, wanted)
            return _pad_before(dq, half, dim, 0), *others

        return _add_sums(dq, sums, lax.cond(source < ring.index, before, behind))

    dq, (sums,) = ring.run_rounds((vk,), None, step)
    dv, dk = both.unpack(order.leave(sums.astype(k.dtype), k.ndim - 2))
    return [order.leave(dq.astype(dtype), dim), dk, dv]
