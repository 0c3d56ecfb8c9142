"""Relative position bias of T5: a learned addition to attention scores, per head and distance."""

from __future__ import annotations

import math

import numpy as np

import sbpjax as flow
from sbpjax import nn


def first_distances(buckets: int, reach: int) -> list[int]:
    """Return the first distance of every bucket but the first, for one direction.

    The first half of the buckets has a distance each, the others grow as powers do, and the last one has all from about
    `reach` on.

    Args:
        buckets: how many, an even number.
        reach: from which on distances are of one kind.

    Example:
        >>> from sbpjax.models.layers.relative import first_distances
        >>> first_distances(8, 16)
        [1, 2, 3, 4, 6, 8, 12]
    """
    exact = buckets // 2
    distances = np.arange(1, reach + 1, dtype=np.float32)  # in float32, as others compute it: it decides at the edges
    grown = np.log(distances / np.float32(exact)) / np.float32(math.log(reach / exact)) * np.float32(buckets - exact)
    of = np.where(
        distances < exact, distances.astype(np.int64), np.minimum(exact + grown.astype(np.int64), buckets - 1)
    )
    return [int(np.argmax(of >= bucket)) + 1 for bucket in range(1, buckets)]


class RelativeBias(nn.Module):
    """A learned bias on attention scores, by the distance of query and key.

    Args:
        heads: H.
        buckets: kinds of distances.
        reach: from which on distances are of one kind.
        both: whether keys behind a query have buckets of their own, half of all.

    Source: Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer (2020).

    Example:
        >>> bias = flow.models.layers.RelativeBias(2, buckets=8, reach=16, both=True)
        >>> bias(flow.arange(3), flow.arange(5)).shape
        sbpjax.Size([1, 2, 3, 5])
    """

    def __init__(self, heads: int, buckets: int, reach: int, both: bool):
        super().__init__()
        self.buckets, self.both = buckets, both
        self.edges = tuple(first_distances(buckets // 2 if both else buckets, reach))
        self.weight = nn.Parameter(flow.zeros(buckets, heads))

    def forward(self, queries: flow.Tensor, keys: flow.Tensor) -> flow.Tensor:
        """Return `(1, H, T, S)` of positions `(T,)` and `(S,)`, integers in every rank whole."""
        ahead = keys[None, :] - queries[:, None]  # (T, S)
        distance = ahead.abs() if self.both else (-ahead).clamp(min=0)
        bucket = sum(((distance >= edge).to(flow.int64) for edge in self.edges), flow.zeros_like(distance))
        if self.both:
            bucket = bucket + (ahead > 0).to(flow.int64) * (self.buckets // 2)
        return flow.nn.functional.embedding(bucket, self.weight).permute(2, 0, 1).unsqueeze(0)
