"""Models of images: a step of forward, backward and plain SGD, eager and as one graph, against timm on PyTorch eager.

    python -m benchmarks.vision                                  # eight architectures, eager and graph
    python -m benchmarks.vision --all                            # all
    python -m benchmarks.vision --models resnet18 --rounds 9
    python -m benchmarks.vision --compile resnet50 resnet101   # the first call of a graph, nothing in caches

One CPU core, one process, the same weights and images for all three; rounds take turns. CPU time is that of the whole
process. timm is imported without torchvision (`tests/support/timm_alone.py`).
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")

import jax
import numpy as np
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.timm_alone import timm

torch.set_num_threads(1)
RATE = 1e-3
# Image size and batch; transformers take the size that they are made for.
SHAPES = {
    "resnet18": (128, 4),
    "convnext_tiny": (128, 2),
    "swin_tiny_patch4_window7_224": (224, 1),
    "efficientnet_b0": (128, 2),
    "resnext50_32x4d": (128, 2),
    "vit_tiny_patch16_224": (224, 2),
}
MORE = {
    "resnet50": (128, 2),
    "seresnet50": (128, 2),
    "res2net50_26w_4s": (128, 2),
    "efficientnetv2_s": (128, 1),
    "rexnet_100": (128, 2),
    "convnextv2_nano": (128, 2),
    "vit_small_patch32_224": (224, 2),
    "swinv2_tiny_window8_256": (256, 1),
}
ALL = {**SHAPES, **MORE}


class Step(nn.Graph):
    """A step as one program; with an optimizer, since gradients that nobody reads are not computed."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=RATE))

    def build(self, images):
        loss = self.model(images).square().mean()
        loss.backward()
        return loss


def eager_step(lib, name: str, images):
    """Return a call of an eager step of a library, which waits for the parameters."""
    model = flow.vision.create_model(name) if lib is flow else timm().create_model(name)
    optimizer = lib.optim.SGD(model.parameters(), lr=RATE)

    def step() -> None:
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()
        if lib is flow:
            jax.block_until_ready([p._array for p in model.parameters()])

    return step


def graph_step(name: str, images):
    """Return a call of a graph of a new model that waits for its result."""
    step = Step(flow.vision.create_model(name))
    parameters = list(step.model.parameters())
    return lambda: (step(images), jax.block_until_ready([p._array for p in parameters]))


def measure(name: str, rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of a step of each side."""
    size, batch = ALL[name]
    x = np.random.default_rng(0).normal(size=(batch, 3, size, size)).astype(np.float32)
    sides = {
        "eager": eager_step(flow, name, flow.tensor(x)),
        "graph": graph_step(name, flow.tensor(x)),
        "torch": eager_step(torch, name, torch.tensor(x)),
    }
    found: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds + 2):
        for side, call in sides.items():
            begun = time.process_time()
            call()
            if number > 1:
                found[side].append(time.process_time() - begun)
    return {side: statistics.median(times) for side, times in found.items()}


def compile_time(name: str) -> tuple[float, float]:
    """Return wall and CPU seconds of a graph's first call, for images of 224 x 224 or the model's size."""
    size = getattr(flow.vision.models.model_config(name), "image_size", 224)
    call = graph_step(name, flow.zeros(2, 3, size, size))
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="*", default=list(SHAPES))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compile", nargs="*", default=[])
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if options.compile:
        print("| model | first call, wall s | CPU s |\n|---|---|---|")
        for name in options.compile:
            print("| {} | {:.1f} | {:.1f} |".format(name, *compile_time(name)), flush=True)
        return
    print(
        "| model | image, batch | torch ms | eager ms | graph ms | eager / torch | graph / torch |\n" + "|---" * 7 + "|"
    )
    ratios: dict[str, list[float]] = {"eager": [], "graph": []}
    for name in ALL if options.all else options.models:
        found = measure(name, options.rounds)
        for side, kept in ratios.items():
            kept.append(found[side] / found["torch"])
        ms = [1000 * found[side] for side in ("torch", "eager", "graph")]
        text = "| {} | {}, {} | {:.0f} | {:.0f} | {:.0f} | {:.2f} | {:.2f} |"
        print(text.format(name, *ALL[name], *ms, ratios["eager"][-1], ratios["graph"][-1]), flush=True)
    means = [math.exp(statistics.mean(map(math.log, kept))) for kept in ratios.values()]
    print("geometric mean: eager {:.2f}, graph {:.2f}".format(*means))


if __name__ == "__main__":
    main()
