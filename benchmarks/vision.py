"""Models of images: forward and backward, eager and as one graph, against timm on PyTorch eager; compile times.

    python -m benchmarks.vision                                  # six architectures, eager and graph
    python -m benchmarks.vision --models resnet18 --rounds 9
    python -m benchmarks.vision --compile resnet50 densenet201   # the first call of a graph, nothing in caches

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
# Image size and batch; transformers take the size that they are made for.
SHAPES = {
    "resnet18": (128, 4),
    "mobilenetv3_large_100": (128, 4),
    "convnext_tiny": (128, 2),
    "swin_tiny_patch4_window7_224": (224, 1),
    "efficientnet_b0": (128, 2),
    "vit_tiny_patch16_224": (224, 2),
}


class Step(nn.Graph):
    """Gradients of a model as one program."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def build(self, images):
        loss = self.model(images).square().mean()
        loss.backward()
        return loss


def ours(model, images) -> None:
    """Run forward and backward, and wait for the gradients."""
    model.zero_grad(set_to_none=True)
    model(images).square().mean().backward()
    jax.block_until_ready([p.grad._array for p in model.parameters() if p.grad is not None])


def theirs(model, images) -> None:
    """Run forward and backward of PyTorch."""
    model.zero_grad(set_to_none=True)
    model(images).square().mean().backward()


def graph_step(name: str, images):
    """Return a call of a graph of a new model that waits for its result."""
    step = Step(flow.vision.create_model(name))
    return lambda: step(images).item()


def measure(name: str, rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of a step of each side."""
    size, batch = SHAPES[name]
    x = np.random.default_rng(0).normal(size=(batch, 3, size, size)).astype(np.float32)
    one, other = flow.vision.create_model(name), timm().create_model(name)
    mine, torchs = flow.tensor(x), torch.tensor(x)
    sides = {
        "eager": lambda: ours(one, mine),
        "graph": graph_step(name, mine),
        "torch": lambda: theirs(other, torchs),
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
    for name in options.models:
        found = measure(name, options.rounds)
        for side, kept in ratios.items():
            kept.append(found[side] / found["torch"])
        ms = [1000 * found[side] for side in ("torch", "eager", "graph")]
        text = "| {} | {}, {} | {:.0f} | {:.0f} | {:.0f} | {:.2f} | {:.2f} |"
        print(text.format(name, *SHAPES[name], *ms, ratios["eager"][-1], ratios["graph"][-1]), flush=True)
    means = [math.exp(statistics.mean(map(math.log, kept))) for kept in ratios.values()]
    print("geometric mean: eager {:.2f}, graph {:.2f}".format(*means))


if __name__ == "__main__":
    main()
