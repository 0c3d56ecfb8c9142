"""Chunked linear cross entropy: the logits of all tokens are never in memory at once.

With x (8192, 1024) and w (131072, 1024) the logits of all tokens take 4 GB in float32, those of 128 tokens 64 MB. A
chunk has all classes, so its logits give its losses, and at once their gradient, ``softmax - onehot``: where the
gradient of the losses is known before them, one loop makes losses and gradients from one product with w, not two.

    losses = lse - (1 - smoothing) · logits[target] - smoothing · mean(logits) + z_loss · lse²,  lse = log Σ exp(logits)

Everywhere ``x`` is ``(*lead, D)``, ``w`` ``(V, D)``, ``target`` integers ``(*lead)``, the bias None or ``(V,)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..promote import compute_dtype

_LOGITS = 2**24  # of one chunk on a CPU: 64 MB in float32
_WEIGHTS = 2**24  # of a block of the gradient of the weights that a CPU adds up
# Bytes of one chunk's logits on an accelerator, whose products want more rows, and whose sum of gradients fewer chunks.
_DEVICE_BYTES = 2**28


@dataclass(frozen=True)
class Loss:
    """Options of the loss of a row of logits.

    Attributes:
        smoothing: share of the uniform distribution in the target.
        z_loss: factor of the squared lse.
        ignore_index: the target of a token that does not count: its loss is 0.
    """

    smoothing: float = 0.0
    z_loss: float = 0.0
    ignore_index: int = -100


@dataclass(frozen=True)
class Classes:
    """The part of the classes on a rank.

    Attributes:
        first: the number of its first class.
        count: how many it holds; the rest is padding.
        total: how many there are.
        names: the mesh axes that divide them.
    """

    first: Any
    count: Any
    total: int
    names: tuple[str, ...] = ()

    def highest(self, x):
        """Return the maximum over the ranks."""
        return lax.pmax(x, self.names) if self.names else x

    def sum(self, *terms):
        """Return the sums over the ranks, by one all-reduce."""
        return lax.psum(jnp.stack(terms), self.names) if self.names else terms


class Rows:
    """The losses of some rows of logits, and the gradient of these.

    Args:
        logits: ``(N, V)`` in the wide dtype; of a rank that holds a part of the classes, its part.
        target: integers ``(N,)``.
        loss: the loss that is wanted.
        classes: the part of the classes; None if it is all of them.
    """

    def __init__(self, logits, target, loss: Loss, classes: Classes | None) -> None:
        self.part = part = classes or Classes(0, None, logits.shape[-1])
        self.loss, self.wide = loss, logits.dtype
        # In int64, which holds -100 and the classes of any dtype.
        target = target.astype(np.int64) if target.dtype.itemsize < 4 else target
        self.counted = target != loss.ignore_index
        own = target - jnp.asarray(part.first, target.dtype)
        column = lax.broadcasted_iota(own.dtype, logits.shape, 1)
        self.is_target = column == own[:, None]
        self.seen = None if part.count is None else column < part.count
        if self.seen is not None:  # the next rank's first class has the number of this one's padding
            self.is_target = self.is_target & self.seen
        shown = logits if self.seen is None else jnp.where(self.seen, logits, -np.inf)
        top = part.highest(lax.stop_gradient(shown.max(-1)))
        terms = [jnp.exp(shown - top[:, None]).sum(-1), jnp.where(self.is_target, logits, 0).sum(-1)]
        if loss.smoothing:
            terms.append((logits if self.seen is None else jnp.where(self.seen, logits, 0)).sum(-1))
        total, picked, *sums = part.sum(*terms)
        self.shown, self.lse = shown, top + jnp.log(total)
        # As where one logit is read by an index: there is none beyond the end.
        self.picked = jnp.where((target >= 0) & (target < part.total), picked, np.nan)
        self.sums = sums

    def losses(self):
        """Return the losses ``(N,)``; 0 of rows that do not count."""
        loss = self.lse - self.number(1 - self.loss.smoothing) * self.picked
        if self.loss.smoothing:
            loss = loss - self.number(self.loss.smoothing / self.part.total) * self.sums[0]
        if self.loss.z_loss:
            loss = loss + self.number(self.loss.z_loss) * self.lse * self.lse
        return jnp.where(self.counted, loss, 0)

    def gradient(self, ct):
        """Return the gradient of the logits, ``(N, V)``, where that of the losses is ``ct`` ``(N,)``."""
        ct = jnp.where(self.counted, ct.astype(self.wide), 0)
        of_lse = ct
        if self.loss.z_loss:
            of_lse = ct * (1 + self.number(2 * self.loss.z_loss) * self.lse)
        grad = jnp.exp(self.shown - self.lse[:, None]) * of_lse[:, None]
        grad = grad - jnp.where(self.is_target, ct[:, None] * self.number(1 - self.loss.smoothing), 0)
        if self.loss.smoothing:
            grad = grad - ct[:, None] * self.number(self.loss.smoothing / self.part.total)
            grad = grad if self.seen is None else jnp.where(self.seen, grad, 0)
        return grad

    def number(self, x: float):
        """Return a number in the dtype of the logits."""
        return np.asarray(x, self.wide)


def logits_of(x, w, bias, precision=None, narrow: bool = False):
    """Return the logits ``(*lead, V)`` in the wide dtype.

    Args:
        x: see the head of this file, like the next two.
        w: weights.
        bias: bias.
        precision: of the product.
        narrow: round them to the dtype of x, as a linear layer's are, and read half the bytes three times.
    """
    wide = compute_dtype(x.dtype)
    dims = (((x.ndim - 1,), (1,)), ((), ()))
    logits = lax.dot_general(x, w, dims, precision=precision, preferred_element_type=x.dtype if narrow else wide)
    if narrow:  # after a barrier: XLA would have the product write the wide ones
        logits = lax.optimization_barrier(logits).astype(wide)
    return logits if bias is None else logits + bias.astype(logits.dtype)


def losses(x, w, bias, target, loss: Loss, *, classes: Classes | None = None, precision=None, on_cpu: bool = True):
    """Return the losses ``(*lead)`` in the wide dtype.

    Args:
        x: see the head of this file, like the next three.
        w: weights.
        bias: bias.
        target: classes.
        loss: the loss that is wanted.
        classes: which part of the classes ``w`` and ``bias`` are, if not all.
        precision: of the products, as `jax.lax.dot_general` takes it.
        on_cpu: whether chunks are as small, and logits as wide, as is best there.
    """
    chunks = _Chunks(target, w.shape[0], x.dtype, on_cpu)

    def chunk(xs):
        rows, wanted = xs
        return Rows(logits_of(rows, w, bias, precision, narrow=not on_cpu), wanted, loss, classes).losses()

    return chunks.join(lax.map(chunk, (chunks.cut(x), chunks.cut(target))))


def gradients(x, w, bias, target, ct, loss: Loss, dtypes, *, classes=None, precision=None, on_cpu: bool = True):
    """Return the losses, and the gradients of x, of the weights and of the bias where they are wanted.

    Args:
        x: as of `losses`, like the next three.
        w: weights.
        bias: bias.
        target: classes.
        ct: the gradient of the losses, ``(*lead)``.
        loss: the loss that is wanted.
        dtypes: the dtypes of the three gradients, None for one that is not wanted.
        classes: as of `losses`, like the next two.
        precision: of the products.
        on_cpu: whether chunks are as small, and logits as wide, as is best there.
    """
    chunks = _Chunks(target, w.shape[0], x.dtype, on_cpu)
    wide = compute_dtype(x.dtype)

    def dot(a, b, a_dim: int, b_dim: int):
        return lax.dot_general(a, b, (((a_dim,), (b_dim,)), ((), ())), precision=precision, preferred_element_type=wide)

    def chunk(sums, xs):
        dw, db = sums
        rows, wanted, weights = xs
        made = Rows(logits_of(rows, w, bias, precision, narrow=not on_cpu), wanted, loss, classes)
        grad = made.gradient(weights)
        fine = grad.astype(x.dtype)
        dx = None if dtypes[0] is None else dot(fine, w, 1, 0).astype(dtypes[0])
        if dw is not None:
            dw = _add_product(dw, fine, rows, dot) if on_cpu else dw + dot(fine, rows, 0, 0)
        if db is not None:
            db = db + grad.sum(0)
        return (dw, db), (made.losses(), dx)

    start = [None if d is None else jnp.zeros(s.shape, wide) for d, s in zip(dtypes[1:], (w, bias), strict=True)]
    (dw, db), (found, dx) = lax.scan(chunk, tuple(start), tuple(map(chunks.cut, (x, target, ct))))
    grads = (None if dx is None else chunks.join(dx), dw, db)
    return chunks.join(found), *(None if g is None else g.astype(d) for g, d in zip(grads, dtypes, strict=True))


def _add_product(total, grad, rows, dot):
    """Return ``total + gradᵀ rows`` in blocks: a CPU makes a product first and adds it then."""
    classes, width = total.shape
    size = min(max(_WEIGHTS // max(width, 1), 1), classes)

    def add(total, first, size: int):
        block = lax.dynamic_slice_in_dim(total, first, size, 0)
        block = block + dot(lax.dynamic_slice_in_dim(grad, first, size, 1), rows, 0, 0)
        return lax.dynamic_update_slice_in_dim(total, block, first, 0)

    blocks = classes // size
    total = lax.fori_loop(np.int32(0), np.int32(blocks), lambda i, total: add(total, i * size, size), total)
    return add(total, blocks * size, classes - blocks * size) if classes % size else total


class _Chunks:
    """Tokens in chunks of which one's logits are in memory at a time.

    Args:
        target: one number per token.
        classes: how many there are.
        dtype: of the logits on an accelerator.
        on_cpu: whether chunks are small.
    """

    def __init__(self, target, classes: int, dtype, on_cpu: bool) -> None:
        self.lead = target.shape
        self.tokens = math.prod(self.lead)
        logits = _LOGITS if on_cpu else _DEVICE_BYTES // np.dtype(dtype).itemsize
        most = max(logits // max(classes, 1), 64)
        self.count = max(-(-self.tokens // most), 1)
        self.rows = max(-(-self.tokens // self.count), 1)

    def cut(self, x):
        """Return ``(*lead, …)`` as ``(chunks, rows, …)``; zeros after the end, which are not read."""
        x = x.reshape(self.tokens, *x.shape[len(self.lead) :])
        behind = self.count * self.rows - self.tokens
        if behind:
            x = jnp.pad(x, ((0, behind), *((0, 0),) * (x.ndim - 1)))
        return x.reshape(self.count, self.rows, *x.shape[1:])

    def join(self, x):
        """Return ``(chunks, rows, …)`` as ``(*lead, …)``."""
        x = x.reshape(self.count * self.rows, *x.shape[2:])[: self.tokens]
        return x.reshape(*self.lead, *x.shape[1:])
