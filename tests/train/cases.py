"""A small model with a table, and runs of it that take seconds."""

from __future__ import annotations

import functools
import json

import numpy as np

import sbpjax as flow
from sbpjax import models, nn, optim
from sbpjax.train import StepOptions, Trainer
from sbpjax.train.data import Numbered
from sbpjax.train.writers import JsonLines

WIDTH, HIDDEN = 4, 8


class Block(models.layers.MLP):
    """An MLP that is added to its input."""

    def __init__(self, drop):
        super().__init__(WIDTH, HIDDEN, "gelu")
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        return x + self.drop(super().forward(x))


class Tower(nn.Module):
    """Two blocks on numbers, with targets to fit."""

    def __init__(self, drop=0.0):
        super().__init__()
        self.blocks = nn.ModuleList(Block(drop) for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def loss(self, x, y):
        return nn.functional.mse_loss(self(x), y)


TOWER = models.Sharding(
    logical_axes={
        "blocks.*.up.weight": ("hidden", "width"),
        "blocks.*.up.bias": ("hidden",),
        "blocks.*.down.weight": ("width", "hidden"),
        "blocks.*.down.bias": ("width",),
    },
    axis_sizes=lambda config: {"hidden": HIDDEN, "width": WIDTH},
    tail_modules=lambda config: {"nothing": -1},
)


class Points(Numbered):
    """Random points, and their squares as targets; a name for each entry if wanted."""

    def __init__(self, samples, named=False):
        super().__init__(samples)
        self.named = named

    def sample(self, number):
        x = np.random.default_rng(number).normal(size=WIDTH).astype(np.float32)
        return {"x": x, "y": x**2} if self.named else (x, x**2)


def trainer(out=None, *, steps=6, drop=0.0, data=None, options=None, writers=None, **chosen):
    """Return a trainer of a fresh `Tower`; keyword arguments are its own."""
    flow.manual_seed(3)
    chosen = {
        "parallel": models.Parallel(device="cpu"),
        "batch_size": 8,
        "optimizer": functools.partial(optim.AdamW, lr=1e-2, weight_decay=0.1),
        "schedule": optim.lr_scheduler.warmup_cosine(2, steps, final=0.1),
        "log_every": 1,
        "sharding": TOWER,
    } | chosen
    return Trainer(
        model=Tower(drop),
        data=Points(40) if data is None else data,
        max_steps=steps,
        out=out,
        writers=[JsonLines()] if writers is None else writers,
        options=options or StepOptions(),
        **chosen,
    )


def records(out):
    """Return what a run has written: by step, its metrics."""
    found = {}
    for line in (out / "metrics.jsonl").read_text().splitlines():
        one = json.loads(line)
        found.setdefault(one.pop("step"), {}).update(one)
    return found


def losses(out):
    """Return the losses that a run has written, by step."""
    return {step: metrics["loss"] for step, metrics in records(out).items() if "loss" in metrics}
