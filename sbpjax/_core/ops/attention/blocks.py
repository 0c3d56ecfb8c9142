"""Blockwise attention: online softmax over blocks of queries and keys, in memory linear in T.

For 4,096 queries in blocks of 512 and keys in blocks of 256, 128 blocks of scores are made one after the other. With
the largest score `m` and the sum `l` of the weights so far, a further block of keys multiplies both by ``exp(m - m')``
and adds to them (online softmax; Milakov and Gimelshein 2018, Dao et al. 2022). The backward makes the scores again
from the logarithm of the sum of their exponentials, the *lse*, that the forward returns. Blocks outside the window,
such as those above the diagonal, are left out, and on a CPU those whose segments do not meet.

Everywhere ``q`` is ``(*lead, G, T, D)``, ``k`` and ``v`` are ``(*lead, S, D)`` and ``(*lead, S, Dv)``: G queries share
a key head. The mask has q's rank, ``(*lead, G, T, S)``, and segments are ``(*lead, T)`` and ``(*lead, S)``; dims of
size 1 stand for all of theirs.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..promote import BOOL, compute_dtype
from .scores import Scores, in_window, may_hide_all

_ROWS, _KEYS = 512, 256  # a block of scores takes 512 kB in float32, which stays in the cache of a core


@dataclass(frozen=True)
class Part:
    """Position of a rank's part of the queries and keys, where they are divided over ranks.

    Attributes:
        row: the number of the first query.
        key: the number of the first key.
        keys: how many of the keys count; None: all.
    """

    row: Any = 0
    key: Any = 0
    keys: Any = None


WHOLE = Part()


class _Blocks:
    """The blocks of one problem: their sizes, the operands in them, and their scores.

    Args:
        one_by_one: whether heads are computed one after the other, in the wide dtype, as is best on a CPU.
    """

    def __init__(self, q, k, v, mask, segments, how: Scores, part: Part, one_by_one: bool) -> None:
        *lead, self.groups, self.rows, _ = q.shape
        self.lead = tuple(lead)
        self.keys = k.shape[-2]
        self.how, self.part, self.one_by_one = how, part, one_by_one
        self.wide = compute_dtype(q.dtype)
        self.fine = self.wide if one_by_one else q.dtype  # the dtype of products
        self.row_blocks, self.bq = _cut(self.rows, max(_ROWS // self.groups, 64))
        self.key_blocks, self.bk = _cut(self.keys, _KEYS)
        self.count = math.prod(lead)
        self.q = _pad_dim(q.reshape(self.count, *q.shape[-3:]), 2, self.row_blocks * self.bq)
        self.k, self.v = (_pad_dim(x.reshape(self.count, *x.shape[-2:]), 1, self.key_blocks * self.bk) for x in (k, v))
        self.mask: Any = None
        if mask is not None:
            flat = mask.reshape(-1, *mask.shape[-3:])
            flat = _pad_dim(flat, 2, self.row_blocks * self.bq) if flat.shape[2] > 1 else flat
            self.mask = _pad_dim(flat, 3, self.key_blocks * self.bk) if flat.shape[3] > 1 else flat
            self.mask_lead = mask.shape[:-3]
        self.segments: Any = None
        if segments is not None:  # of each head; the padding is as its neighbour, so that it meets no further segment
            lengths = self.row_blocks * self.bq, self.key_blocks * self.bk
            self.segments = tuple(
                _pad_dim(self.of_heads(x), 1, n, mode="edge") for x, n in zip(segments, lengths, strict=True)
            )

    def of_heads(self, x):
        """Return segments ``(*lead, T)`` as ``(N, T)``."""
        return jnp.broadcast_to(x, (*self.lead, x.shape[-1])).reshape(self.count, x.shape[-1])

    def query_rows(self, x, i):
        """Return the rows of block ``i`` of ``(G, T, ...)``, as ``(G * bq, ...)``."""
        block = lax.dynamic_slice_in_dim(x, i * self.bq, self.bq, 1)
        return block.reshape(self.groups * self.bq, *x.shape[2:])

    def key_rows(self, x, j):
        """Return the rows of block ``j`` of ``(S, ...)``."""
        return lax.dynamic_slice_in_dim(x, j * self.bk, self.bk, 0)

    def key_block_range(self, i, segments=None):
        """Return the first block of keys that the queries of block ``i`` read, and the one after the last.

        Args:
            i: the number of the block of rows.
            segments: those of one head, or None.
        """
        left, right = self.how.window
        row, none, every = self.part.row - self.part.key + i * self.bq, np.int32(0), np.int32(self.key_blocks)
        first = none if left is None else lax.clamp(none, (row - left) // self.bk, every)
        last = every if right is None else lax.clamp(none, (row + right + self.bq + self.bk - 1) // self.bk, every)
        if segments is None or not self.one_by_one:  # heads that are computed together read the blocks of any of them
            return first, last
        own, theirs = lax.dynamic_slice_in_dim(segments[0], i * self.bq, self.bq, 0), segments[1].reshape(-1, self.bk)
        meets = (theirs.max(1) >= own.min()) & (theirs.min(1) <= own.max())
        number = jnp.arange(self.key_blocks, dtype=np.int32)
        first = jnp.maximum(first, jnp.where(meets, number, every).min())
        return first, jnp.minimum(last, jnp.where(meets, number + 1, none).max())

    def scan_keys(self, i, segments, step, start):
        """Return the state after all blocks of keys that the queries of block ``i`` read.

        Args:
            i: the number of the block of rows.
            segments: those of one head, or None.
            step: ``(j, state, hides) -> state``; hides: whether some keys of the block are hidden from some queries.
            start: the first state.
        """
        first, last = self.key_block_range(i, segments)
        if segments is not None or self.how.window[0] is not None or self.part.keys is not None:
            return lax.fori_loop(first, last, functools.partial(step, hides=True), start)
        whole, right = np.int32(self.keys // self.bk), self.how.window[1]
        if right is not None:
            whole = lax.clamp(first, (self.part.row - self.part.key + i * self.bq + right + 1) // self.bk, whole)
        state = lax.fori_loop(first, whole, functools.partial(step, hides=False), start)
        if right is None and self.keys == self.key_blocks * self.bk:
            return state
        return lax.fori_loop(whole, last, functools.partial(step, hides=True), state)

    def mask_index(self, n):
        """Return where the mask of head ``n`` is among the masks."""
        at = 0
        for size, own in zip(self.lead[::-1], _strides(self.mask_lead)[::-1], strict=True):
            at, n = at + (n % size) * own, n // size
        return at

    def mask_block(self, n, i, j):
        """Return where a block's mask begins and its shape."""
        _, groups, rows, keys = self.mask.shape
        begin = (self.mask_index(n), 0, i * self.bq if rows > 1 else 0, j * self.bk if keys > 1 else 0)
        return [jnp.asarray(x, np.int32) for x in begin], (
            1,
            groups,
            self.bq if rows > 1 else 1,
            self.bk if keys > 1 else 1,
        )

    def scores(self, q, k, n, i, j, segments, hides: bool):
        """Return the scores ``(G * bq, bk)`` of a block, hidden ones -inf, and the slope of their cap or None.

        Args:
            q: the rows of the block; already scaled where heads are computed one by one.
            k: its keys.
            n: the head.
            i: the number of the block of rows.
            j: the number of the block of keys.
            segments: those of the head, or None.
            hides: whether a window, segments or the padding hide keys.
        """
        s = _dot(q, k, 1, 1, self.wide)
        s = s if self.one_by_one else s * np.asarray(self.how.scale, self.wide)
        s, slope = self.how.cap_scores(s)
        s = s.reshape(self.groups, self.bq, self.bk)
        keep = None
        if self.mask is not None:
            mask = lax.dynamic_slice(self.mask, *self.mask_block(n, i, j))[0]
            if mask.dtype == BOOL:
                keep = mask
            else:
                s = s + mask.astype(self.wide)
        keep = _both(keep, self.visible_keys(i, j, segments) if hides else None)
        s = s if keep is None else jnp.where(keep, s, -np.inf)
        return s.reshape(self.groups * self.bq, self.bk), slope

    def visible_keys(self, i, j, segments):
        """Return ``(bq, bk)``: which keys of a block its queries see through window, segments and padding, or None."""
        key = lax.broadcasted_iota(np.int32, (self.bq, self.bk), 1) + j * self.bk
        row = lax.broadcasted_iota(np.int32, (self.bq, self.bk), 0) + i * self.bq
        keep = in_window(row + self.part.row, key + self.part.key, self.how.window)
        if segments is not None:
            own = lax.dynamic_slice_in_dim(segments[0], i * self.bq, self.bq, 0)
            keep = _both(keep, own[:, None] == self.key_rows(segments[1], j))
        if self.part.keys is not None:
            return _both(keep, key < self.part.keys)
        return _both(keep, key < self.keys) if self.keys < self.key_blocks * self.bk else keep

    def scale_rows(self, q):
        """Return the rows of a block as `scores` takes them."""
        return q.astype(self.wide) * np.asarray(self.how.scale, self.wide) if self.one_by_one else q

    def map_heads(self, head, *arrays):
        """Return ``head(n, *arrays[n])`` for all heads."""
        numbers = jnp.arange(self.count, dtype=np.int32)
        if self.one_by_one:
            return lax.map(lambda xs: head(*xs), (numbers, *arrays))
        return jax.vmap(head)(numbers, *arrays)


def forward(q, k, v, mask, segments, how: Scores, *, part: Part = WHOLE, one_by_one: bool = True):
    """Return the attention of queries to keys applied to values, and the lse of the scores.

    Args:
        q: ``(*lead, G, T, D)``.
        k: ``(*lead, S, D)``.
        v: ``(*lead, S, Dv)``.
        mask: None, bools or numbers to add, see the head of this file.
        segments: None, or integers of the queries and of the keys; a query reads the keys with its own number.
        how: how the scores are made.
        part: which part of a divided problem this is.
        one_by_one: whether heads are computed one after the other.

    Returns:
        ``(*lead, G, T, Dv)`` in q's dtype, and ``(*lead, G, T)`` in the wide one. A row without any key has lse +inf
        and 0 where `attention_scores.may_hide_all`; elsewhere lse -inf and NaN.
    """
    b = _Blocks(q, k, v, mask, segments, how, part, one_by_one)
    empty_is_zero = may_hide_all(mask, segments, how)

    def head(n, q, k, v, segments):
        def rows(i):
            qi = b.scale_rows(b.query_rows(q, i))

            def keys(j, state, hides):
                total, m, acc = state
                s, _ = b.scores(qi, b.key_rows(k, j).astype(b.fine), n, i, j, segments, hides)
                higher = jnp.maximum(m, s.max(-1))
                safe = jnp.where(higher == -np.inf, 0, higher)  # no key yet: exp(-inf - 0) is 0, and no NaN
                p, fade = jnp.exp(s - safe[:, None]), jnp.exp(m - safe)
                acc = acc * fade[:, None] + _dot(p.astype(b.fine), b.key_rows(v, j).astype(b.fine), 1, 0, b.wide)
                return total * fade + p.sum(-1), higher, acc

            count = qi.shape[0]
            start = jnp.zeros(count, b.wide), jnp.full(count, -np.inf, b.wide), jnp.zeros((count, v.shape[-1]), b.wide)
            total, m, acc = b.scan_keys(i, segments, keys, start)
            out, lse = acc / total[:, None], m + jnp.log(total)
            if empty_is_zero:
                out, lse = jnp.where(total[:, None] == 0, 0, out), jnp.where(total == 0, np.inf, lse)
            return out.reshape(b.groups, b.bq, -1), lse.reshape(b.groups, b.bq)

        out, lse = lax.map(rows, jnp.arange(b.row_blocks, dtype=np.int32))  # (blocks, G, bq, ...)
        return _join_blocks(out.astype(q.dtype), b.rows), _join_blocks(lse, b.rows)

    out, lse = b.map_heads(head, b.q, b.k, b.v, b.segments)
    return out.reshape(*q.shape[:-1], v.shape[-1]), lse.reshape(q.shape[:-1])


def backward(
    q, k, v, mask, segments, how: Scores, out, lse, ct, *, mask_grad=False, part: Part = WHOLE, one_by_one=True
):
    """Return the gradients of queries, keys and values, and of the mask if `mask_grad`.

    Args:
        q: as in `forward`, like the next five.
        k: keys.
        v: values.
        mask: mask.
        segments: of queries and keys.
        how: how the scores are made.
        out: the first result of `forward`.
        lse: the second result of `forward`.
        ct: the gradient of ``out``.
        mask_grad: whether the gradient of the mask is returned too.
        part: which part of a divided problem this is.
        one_by_one: whether heads are computed one after the other.
    """
    one_by_one = one_by_one or mask_grad  # else the mask's gradient is there once per head before it is summed
    b = _Blocks(q, k, v, mask, segments, how, part, one_by_one)
    scale = np.asarray(how.scale, b.wide)
    length = b.row_blocks * b.bq
    delta = (ct.astype(b.wide) * out.astype(b.wide)).sum(-1)
    flat = [x.reshape(b.count, *x.shape[len(b.lead) :]) for x in (ct, lse, delta)]
    ct, delta = _pad_dim(flat[0], 2, length), _pad_dim(flat[2], 2, length)
    lse = _pad_dim(flat[1], 2, length, np.inf)  # rows of the padding have no weights

    def head(n, q, k, v, ct, lse, delta, segments, dmask=None):
        def rows(grads, i):
            qi, cti = b.query_rows(q, i), b.query_rows(ct, i).astype(b.fine)
            lsei, deltai = b.query_rows(lse, i)[:, None], b.query_rows(delta, i)[:, None]
            scaled = b.scale_rows(qi)
            # A CPU multiplies these two from the left twice as fast as transposed weights from the right.
            q_columns, ct_columns = scaled.T, cti.T

            def keys(j, state, hides):
                dq, dk, dv, dmask = state
                kj, vj = b.key_rows(k, j).astype(b.fine), b.key_rows(v, j).astype(b.fine)
                s, slope = b.scores(scaled, kj, n, i, j, segments, hides)
                p = jnp.exp(s - lsei)
                ds = p * (_dot(cti, vj, 1, 1, b.wide) - deltai)
                if mask_grad:
                    dmask = _add_block(b, dmask, ds, n, i, j)
                ds = (ds if slope is None else ds * slope).astype(b.fine)
                dv = _add_columns(dv, _dot(ct_columns, p.astype(b.fine), 1, 0, b.wide), j)
                dk = _add_columns(dk, _dot(q_columns, ds, 1, 0, b.wide), j)
                return dq + _dot(ds, kj, 1, 0, b.wide), dk, dv, dmask

            start = (jnp.zeros(qi.shape, b.wide), *grads)
            dq, *grads = b.scan_keys(i, segments, keys, start)
            return tuple(grads), (dq * scale).reshape(b.groups, b.bq, -1).astype(q.dtype)

        columns = [jnp.zeros((x.shape[1], x.shape[0]), b.wide) for x in (k, v)]
        (dk, dv, dmask), dq = lax.scan(rows, (*columns, dmask), jnp.arange(b.row_blocks, dtype=np.int32))
        dk = dk if one_by_one else dk * scale
        dk, dv = (x.T[: b.keys].astype(y.dtype) for x, y in ((dk, k), (dv, v)))
        return _join_blocks(dq, b.rows), dk, dv, dmask

    arrays = (b.q, b.k, b.v, ct, lse, delta, b.segments)
    if mask_grad:
        numbers = jnp.arange(b.count, dtype=np.int32)
        dmask, (dq, dk, dv) = lax.scan(
            lambda dmask, xs: (lambda *grads: (grads[3], grads[:3]))(*head(*xs, dmask)),
            jnp.zeros(b.mask.shape, b.wide),
            (numbers, *arrays),
        )
        dmask = dmask[:, :, : mask.shape[-2], : mask.shape[-1]].reshape(mask.shape).astype(mask.dtype)
    else:
        dq, dk, dv, _ = b.map_heads(head, *arrays)
    grads = dq.reshape(q.shape), dk.reshape(k.shape), dv.reshape(v.shape)
    return (*grads, dmask) if mask_grad else grads


def _add_block(b: _Blocks, dmask, ds, n, i, j):
    begin, shape = b.mask_block(n, i, j)
    block = ds.reshape(1, b.groups, b.bq, b.bk)
    axes = tuple(d for d in (1, 2, 3) if shape[d] == 1 < block.shape[d])
    block = block.sum(axes, keepdims=True) if axes else block
    return lax.dynamic_update_slice(dmask, lax.dynamic_slice(dmask, begin, shape) + block, begin)


def _add_columns(x, block, j):
    begin, width = j * block.shape[1], block.shape[1]
    return lax.dynamic_update_slice_in_dim(x, lax.dynamic_slice_in_dim(x, begin, width, 1) + block, begin, 1)


def _cut(length: int, most: int) -> tuple[int, int]:
    """Return how many blocks a length makes, and the size of each; the last may reach beyond the end."""
    count = max(-(-length // most), 1)
    return count, max(-(-length // count), 1)


def _pad_dim(x, dim: int, length: int, fill: Any = 0, mode: str = "constant"):
    if x.shape[dim] == length:
        return x
    widths = [(0, 0)] * x.ndim
    widths[dim] = (0, length - x.shape[dim])
    return jnp.pad(x, widths, mode, **({"constant_values": fill} if mode == "constant" else {}))


def _join_blocks(x, rows: int):
    """Return ``(blocks, G, bq, ...)`` as ``(G, rows, ...)``."""
    x = x.swapaxes(0, 1)
    return x.reshape(x.shape[0], -1, *x.shape[3:])[:, :rows]


def _strides(shape) -> list[int]:
    """Return by how much the place in a flattened shape grows along each dim; 0 along dims of size 1."""
    return [math.prod(shape[d + 1 :]) if n > 1 else 0 for d, n in enumerate(shape)]


def _both(x, y):
    return x if y is None else y if x is None else x & y


def _dot(x, y, x_dim: int, y_dim: int, dtype):
    return lax.dot_general(x, y, (((x_dim,), (y_dim,)), ((), ())), preferred_element_type=dtype)
