"""The first call of a training graph by depth: it should not grow with equal layers.

    python -m benchmarks.depth                 # 4, 16, 64 and 256 layers, a process each: about two minutes
    python -m benchmarks.depth 8 --width 256

A small GPT with AdamW, data x tensor parallel on 2 x 4 virtual CPU devices, empty cache. Times are CPU time of the
process (the compiler has threads); ``trace``, ``plan`` and ``compile`` are wall time. Three later steps follow.

`benchmarks/results/performance.md` has figures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
os.environ.setdefault("NPROC", "32")
os.environ["SBPJAX_CACHE_DIR"] = "off"

import numpy as np

import sbpjax as flow
from sbpjax import nn, optim, sbp

F = nn.functional
VOCAB, HEADS, BATCH, LENGTH = 256, 4, 8, 32


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = (
            u.reshape(b, t, HEADS, width // HEADS).permute(0, 2, 1, 3) for u in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(0, 2, 1, 3).reshape(b, t, width)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.norm2(x))))

    def shard(self, placement) -> None:
        """Split the weights over the tensor axis."""
        for linear, dim in ((self.qkv, 0), (self.out, 1), (self.up, 0), (self.down, 1)):
            split = linear.weight.detach().to_global(placement, (sbp.broadcast, sbp.split(dim)))
            linear.weight = nn.Parameter(split)


class GPT(nn.Module):
    """Embedding, equal blocks, a linear head and the loss."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCAB, width), nn.Linear(width, VOCAB)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x).reshape(-1, VOCAB), targets.reshape(-1))


class Train(nn.Graph):
    """One step of AdamW."""

    def __init__(self, model: GPT) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(model.parameters(), lr=1e-3))

    def build(self, tokens, targets):
        loss = self.model(tokens, targets)
        loss.backward()
        return loss


def run(layers: int, width: int) -> None:
    """Print the time of the first call and of later ones."""
    placement = flow.placement("cpu", np.arange(8).reshape(2, 4).tolist())
    flow.manual_seed(0)
    model = GPT(layers, width).to_global(placement, (sbp.broadcast, sbp.broadcast))
    for block in model.blocks:
        block.shard(placement)
    graph = Train(model)
    ids = np.random.default_rng(0).integers(0, VOCAB, (BATCH, LENGTH + 1))
    batch = [
        flow.tensor(part, placement=placement, sbp=(sbp.split(0), sbp.broadcast)) for part in (ids[:, :-1], ids[:, 1:])
    ]
    began, cpu = time.perf_counter(), time.process_time()
    graph(*batch).item()
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in graph.program.seconds.items())
    later = time.process_time()
    for _ in range(3):
        graph(*batch).item()
    later = (time.process_time() - later) / 3
    print(f"{layers:4} layers: first call {cpu:.1f} s CPU, {wall:.1f} s wall ({parts}); step {later * 1e3:.0f} ms CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("layers", type=int, nargs="*", default=[4, 16, 64, 256])
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()
    if len(options.layers) == 1:
        run(options.layers[0], options.width)
        return
    for layers in options.layers:
        command = [sys.executable, "-m", "benchmarks.depth", str(layers), "--width", str(options.width)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
