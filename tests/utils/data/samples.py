"""Datasets that worker processes import; in a module of their own, as workers run none of the tests."""

import os
import random
import sys
import time

import numpy as np

import sbpjax as flow
import sbpjax.nn as nn
from sbpjax.utils.data import Dataset, IterableDataset, get_worker_info


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
        return np.zeros(2)


class Slow(Numbers):
    def __getitem__(self, i):
        time.sleep(0.002)
        return np.full(self.shape, i, np.float32)


class Big(Numbers):
    def __getitem__(self, i):
        return np.full(self.shape, i, np.float32)


def set_global(worker):
    global GLOBAL
    GLOBAL = worker + 100


def collate_global(batch):
    return GLOBAL, np.stack(batch)
