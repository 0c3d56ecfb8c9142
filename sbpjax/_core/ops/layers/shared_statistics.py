"""Batch statistics across ranks: per-rank mean and variance, combined by the formula of Chan et al.

Rank 0 has the rows 1 and 3 of a channel, rank 1 the row 8: means 2 and 8, sums of squared distances 2 and 0, counts 2
and 1. The mean of all is (2 * 2 + 1 * 8) / 3 = 4, the sum of squares 2 + 2 * (2 - 4)**2 + 0 + 1 * (8 - 4)**2 = 26. No
difference of large squares is taken, so the variance is as exact as that of one rank.
"""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from ..promote import cast, compute_dtype


def own_statistics(x, /):
    """Return the mean and the sum of squared distances from it of every channel, and the count, as ``(2C + 1,)``.

    Args:
        x: ``(N, C, ...)``, floats; without any elements all are 0.
    """
    wide = cast(x, compute_dtype(x.dtype))
    axes = tuple(d for d in range(x.ndim) if d != 1)
    count = math.prod(x.shape[d] for d in axes)
    mean = lax.div(lax.reduce_sum(wide, axes), np.asarray(max(count, 1), wide.dtype))
    centered = lax.sub(wide, lax.broadcast_in_dim(mean, x.shape, (1,)))
    squares = lax.reduce_sum(lax.square(centered), axes)
    return lax.concatenate([mean, squares, lax.full((1,), count, wide.dtype)], 0)


def joined_statistics(rows, running_mean, running_var, momentum, /):
    """Return mean and biased variance of every channel over all ranks, then the given running statistics, moved.

    Args:
        rows: ``(ranks, 2C + 1)``, the `own_statistics` of every rank.
        running_mean: ``(C,)`` or None.
        running_var: ``(C,)`` or None; moves towards the unbiased variance.
        momentum: 0-d, how far the running statistics move; they stay if no rank has an element.
    """
    channels = (rows.shape[1] - 1) // 2
    counts = lax.stop_gradient(rows[:, 2 * channels :])  # (ranks, 1)
    total = lax.reduce_sum(counts, (0, 1))
    one = np.asarray(1, rows.dtype)
    share = lax.div(counts, lax.max(total, one))
    means, squares = rows[:, :channels], rows[:, channels : 2 * channels]
    mean = lax.reduce_sum(means * share, (0,))
    spread = lax.reduce_sum(squares + counts * lax.square(means - mean[None]), (0,))
    variance = lax.div(spread, lax.full_like(spread, lax.max(total, one)))
    unbiased = lax.div(spread, lax.full_like(spread, lax.max(total - one, one)))

    def move(running, new):
        step = lax.select(total > 0, cast(momentum, running.dtype), np.zeros((), running.dtype))
        return running + (cast(lax.stop_gradient(new), running.dtype) - running) * step

    pairs = ((running_mean, mean), (running_var, unbiased))
    return (mean, variance, *[move(running, new) for running, new in pairs if running is not None])
