"""What building well-known architectures costs, each in a new process with the cache off.

    python benchmarks/build_models.py

Printed are CPU seconds of the process from after the import, all threads, and the programs that XLA compiled: medians
of three processes. The architectures have the parameters of those that they are named after, drawn as their layers draw
them; they are built, not run, so there is no forward here.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROUNDS = 3


def resnet50(nn):
    """Bottlenecks of three convolutions."""
    parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)]
    inputs = 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for i in range(depth):
            for a, b, size in ((inputs, width, 1), (width, width, 3), (width, 4 * width, 1)):
                parts += [nn.Conv2d(a, b, size, bias=False), nn.BatchNorm2d(b)]
            if not i:
                parts += [nn.Conv2d(inputs, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)]
            inputs = 4 * width
    return nn.Sequential(*parts, nn.Linear(2048, 1000))


def mobilenet_v3(nn):
    """Inverted residuals with squeeze and excitation."""
    parts = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16)]
    widths = (16, 16, 24, 24, 40, 40, 40, 80, 80, 80, 80, 112, 112, 160, 160, 160)
    wide = (16, 64, 72, 72, 120, 120, 240, 200, 184, 184, 480, 672, 672, 960, 960)
    for a, b, w in zip(widths[:-1], widths[1:], wide, strict=True):
        parts += [nn.Conv2d(a, w, 1, bias=False), nn.BatchNorm2d(w)]
        parts += [nn.Conv2d(w, w, 5, groups=w, bias=False), nn.BatchNorm2d(w)]
        parts += [nn.Conv2d(w, w // 4, 1), nn.Conv2d(w // 4, w, 1)]
        parts += [nn.Conv2d(w, b, 1, bias=False), nn.BatchNorm2d(b)]
    return nn.Sequential(*parts, nn.Conv2d(160, 960, 1, bias=False), nn.Linear(960, 1280), nn.Linear(1280, 1000))


def _transformer(nn, dim: int, depth: int) -> list:
    layers = []
    for _ in range(depth):
        layers += [nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)]
        layers += [nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)]
    return layers


def vit_b(nn):
    """Twelve transformer blocks of width 768."""
    patches = [nn.Conv2d(3, 768, 16, 16), nn.Embedding(197, 768)]
    return nn.Sequential(*patches, *_transformer(nn, 768, 12), nn.LayerNorm(768), nn.Linear(768, 1000))


def swin_t(nn):
    """Windowed transformer blocks of four widths, with merged patches and tables of relative positions."""
    parts = [nn.Conv2d(3, 96, 4, 4), nn.LayerNorm(96)]
    for stage, depth in enumerate((2, 2, 6, 2)):
        dim = 96 << stage
        parts += _transformer(nn, dim, depth) + [nn.Embedding(169, 3 << stage) for _ in range(depth)]
        if stage < 3:
            parts += [nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)]
    return nn.Sequential(*parts, nn.LayerNorm(768), nn.Linear(768, 1000))


def convnext_t(nn):
    """Depthwise 7 × 7 convolutions and pointwise layers."""
    parts = [nn.Conv2d(3, 96, 4, 4), nn.LayerNorm(96)]
    for stage, depth in enumerate((3, 3, 9, 3)):
        dim = 96 << stage
        for _ in range(depth):
            parts += [nn.Conv2d(dim, dim, 7, 1, 3, groups=dim), nn.LayerNorm(dim)]
            parts += [nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)]
        if stage < 3:
            parts += [nn.LayerNorm(dim), nn.Conv2d(dim, 2 * dim, 2, 2)]
    return nn.Sequential(*parts, nn.LayerNorm(768), nn.Linear(768, 1000))


def vgg11(nn):
    """Eight 3 × 3 convolutions and three wide linear layers: 133 million parameters."""
    widths = (3, 64, 128, 256, 256, 512, 512, 512, 512)
    parts = [nn.Conv2d(a, b, 3, 1, 1) for a, b in zip(widths[:-1], widths[1:], strict=True)]
    return nn.Sequential(*parts, nn.Linear(25088, 4096), nn.Linear(4096, 4096), nn.Linear(4096, 1000))


BUILDERS = (resnet50, mobilenet_v3, vit_b, swin_t, convnext_t, vgg11)


def measure(name: str) -> None:
    """Build one architecture in this process; print [CPU seconds, programs, parameters] as JSON."""
    import jax

    programs = 0

    def listen(event: str, duration: float, **_: object) -> None:
        nonlocal programs
        programs += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    from sbpjax import nn

    start = time.process_time()
    model = globals()[name](nn)
    seconds = time.process_time() - start
    print(json.dumps([seconds, programs, sum(p.numel() for p in model.parameters())]))


def main() -> None:
    """Print a table with a row per architecture."""
    here = pathlib.Path(__file__).resolve()
    env = os.environ | {"SBPJAX_CACHE_DIR": "off", "PYTHONPATH": str(here.parents[1])}
    print("| architecture | parameters | CPU s | programs |\n|---|---:|---:|---:|")
    for builder in BUILDERS:
        found = []
        for _ in range(ROUNDS):
            command = [sys.executable, str(here), builder.__name__]
            done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
        seconds = statistics.median(f[0] for f in found)
        print(f"| {builder.__name__} | {found[0][2] / 1e6:.1f} M | {seconds:.2f} | {found[0][1]} |", flush=True)


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
