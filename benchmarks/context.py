"""What a step on long sequences holds on one device, and sends, where positions are divided over devices.

A Llama of one layer, width 64, 4 heads, vocabulary 64, one sequence, forward, backward and AdamW on virtual CPU
devices: activations and temporaries by `graph.memory()`, as the compiler counts them and as the plan guesses, and bytes
that one device receives by `graph.traffic()`. Counts of compiled programs: load does not disturb them.

    python benchmarks/context.py 8192 ring 1 2 4 8
    python benchmarks/context.py 8192 ulysses 2 4
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

from sbpjax import models, nn, optim
from sbpjax.models.llama import Llama, LlamaConfig

CONFIG = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4)


class Step(nn.Graph):
    """A training step of a model."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(model.parameters(), lr=1e-3))

    def build(self, tokens, targets):
        """Return the loss, after an update."""
        loss = self.model.loss(tokens, targets)
        loss.backward()
        return loss


def main(length: int, by: str, sizes: list[int]) -> None:
    """Print a row for every number of devices."""
    head = "activations + temporaries, MB | as the plan guesses | planned MB received | compiled"
    print(f"| {length} tokens, {by} on | {head} |")
    print("|---|---|---|---|---|")
    for context in sizes:
        spec = models.Parallel(context=context, context_by=by, device="cpu")
        step = Step(models.parallelize(Llama(CONFIG), spec))
        tokens = spec.place(np.zeros((1, length), np.int64))
        held, guess = (step.memory(tokens, tokens, compiled=compiled) for compiled in (True, False))
        sent = "- | -"
        if context > 1:
            traffic = step.traffic()
            sent = " | ".join(f"{sum(kinds.values()) / 1e6:.2f}" for kinds in (traffic.planned, traffic.compiled))
        found = [f"{(m.activations + m.temporaries) / 1e6:.1f}" for m in (held, guess)]
        print(f"| {context} | {found[0]} | {found[1]} | {sent} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], [int(n) for n in sys.argv[3:]])
