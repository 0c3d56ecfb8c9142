"""`DistributedSampler`: each process takes every n-th sample of one common order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sbpjax.errors import DataError

from .dataset import Dataset as Dataset
from .sampler import Sampler as Sampler


class DistributedSampler(Sampler[int]):
    """The samples of one process: ``order[rank::num_replicas]`` of an order made from `seed` and the epoch.

    Args:
        dataset: a sized dataset.
        num_replicas: the number of processes that share it; all of this run if not given.
        rank: the index of the process; this one if not given.
        shuffle: whether the order is random.
        seed: of the order; the same in all processes.
        drop_last: leave out samples that do not divide evenly; otherwise some come twice, so that all get as many.

    Example:
        >>> for epoch in range(epochs):
        ...     sampler.set_epoch(epoch)           # another order each time
        ...     for batch in loader:
        ...         ...
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from sbpjax.distributed import env  # workers load this module without JAX

            num_replicas = env.get_world_size() if num_replicas is None else num_replicas
            rank = env.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            rule = f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            seen = f"rank={rank}, num_replicas={num_replicas}"
            raise DataError("DistributedSampler(...)", seen, rule, "rank=sbpjax.env.get_rank()")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        total = len(dataset)
        self.num_samples = total // num_replicas if drop_last else math.ceil(total / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        # Where samples do not divide evenly, the order begins again. Only the places of this process are made.
        places = np.arange(self.rank, self.total_size, self.num_replicas) % n if n else np.arange(0)
        if self.shuffle:
            places = np.random.default_rng((self.seed, self.epoch)).permutation(n)[places]
        return iter(places.tolist())

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Take the order of an epoch from the next iteration on."""
        self.epoch = epoch
