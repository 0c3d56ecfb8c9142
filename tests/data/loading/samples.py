"""Datasets that worker processes import; in a module of their own, as workers run none of the tests."""

import os
import random
import sys
import time

import numpy as np

import sbpjax as flow
import sbpjax.nn as nn
from sbpjax.utils.data import (
    Dataset,
    GlobalLoader,  # noqa: F401  # workers have a stand-in of it, and no JAX by it
    IterableDataset,
    get_worker_info,
)


class Net(nn.Module):
    """Workers may import a module that defines one; it cannot be used there."""


class Numbers(Dataset):
    """Arrays, numbers, strings and tensors, with chance in them."""

    def __init__(self, n, shape=(3, 5)):
        self.n, self.shape = n, shape

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        image = np.full(self.shape, i, np.float32) + np.random.random()
        return {"image": image, "label": i, "name": f"n{i}", "extra": (flow.tensor([float(i), 2]), random.random())}


class WhereAmI(Numbers):
    def __getitem__(self, i):
        policy = os.sched_getscheduler(0) if hasattr(os, "SCHED_BATCH") else 3
        return np.array([os.getpid(), "jax" in sys.modules, get_worker_info() is not None, policy])


class Tensors(Numbers):
    """Samples made as PyTorch's datasets make them: with the functions of tensors."""

    def __getitem__(self, i):
        image = flow.arange(6).reshape(2, 3).float() / 4 - flow.rand(1) * 0
        image = flow.nn.functional.pad(image, (1, 0)) if i % 2 else flow.cat([image, flow.zeros(2, 1)], dim=1)
        image = flow.stack([image.flip(0), image.clamp(min=0.2)])
        (brightest, where), noise = image.max(dim=2), flow.randn(2, 2, generator=flow.Generator().manual_seed(i))
        crop = flow.randint(0, 2, (1,)).item()
        return image, brightest + noise * 0, where, image[:, crop : crop + 1].mean(dim=(1, 2)) * 0 + i


class Ending(Numbers):
    """A dataset with an iterator in it that is empty too early."""

    def __init__(self, n):
        super().__init__(n)
        self.rest = None

    def __getitem__(self, i):
        self.rest = iter(range(3)) if self.rest is None else self.rest
        return np.full(2, next(self.rest))


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.n, step):
            yield np.array([i, np.random.randint(1000)])


class Failing(Numbers):
    def __init__(self, n, how):
        super().__init__(n)
        self.how = how

    def __getitem__(self, i):
        if i == 5:
            if self.how == "key":
                raise KeyError("missing\nentry")
            if self.how == "exit":
                os._exit(3)
            if self.how == "sleep":
                time.sleep(60)
            if self.how == "module":
                Net()
            if self.how == "method":
                flow.ones(2, 2).to_global(None, None)
        return np.zeros(2)


class Slow(Numbers):
    def __getitem__(self, i):
        time.sleep(0.002)
        return np.full(self.shape, i, np.float32)


class Counted(Numbers):
    """A dataset that writes a byte to a file for every sample that is fetched."""

    def __init__(self, n, shape, file):
        super().__init__(n, shape)
        self.file = file

    def __getitem__(self, i):
        with open(self.file, "ab") as file:
            file.write(b".")
        return np.full(self.shape, i, np.float32)


class Big(Numbers):
    def __getitem__(self, i):
        return np.full(self.shape, i, np.float32)


def set_global(worker):
    global GLOBAL
    GLOBAL = worker + 100


def collate_global(batch):
    return GLOBAL, np.stack(batch)


class Holding(Numbers):
    """A dataset that holds a module."""

    def __init__(self, n):
        super().__init__(n)
        self.net = nn.Linear(2, 2)
