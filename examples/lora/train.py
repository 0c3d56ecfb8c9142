"""Train a small Llama on Python's sources, save it as a Hugging Face folder, and fine-tune it by LoRA.

SBPJAX_CPU_DEVICES=8 NPROC=32 python -m examples.lora.train --out runs/lora
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")

import numpy as np

import sbpjax as flow
from sbpjax import models, nn, optim
from sbpjax.models import lora
from sbpjax.models.llama import Llama, LlamaConfig

LENGTH, BATCH = 64, 16
LEAST_GAIN = 0.3  # nats per byte on documentation that was not trained on


def sources() -> np.ndarray:
    """Return the bytes of modules of the standard library that are text above all."""
    folder = Path(os.__file__).parent
    files = sorted(folder.glob("*.py"))[:80]
    return np.frombuffer(b"\n".join(file.read_bytes() for file in files), np.uint8).astype(np.int64)


def documentation() -> np.ndarray:
    """Return the bytes of Python's language reference."""
    return np.frombuffer("\n".join(topics[name] for name in sorted(topics)).encode(), np.uint8).astype(np.int64)


def batch(text: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return tokens and targets, two `(BATCH, LENGTH)`, from random places."""
    starts = random.integers(0, len(text) - LENGTH - 1, BATCH)
    windows = text[starts[:, None] + np.arange(LENGTH + 1)]
    return windows[:, :-1], windows[:, 1:]


class Step(nn.Graph):
    """A training step of some of a model's parameters.

    Args:
        model: it.
        parameters: those.
        lr: the learning rate.
    """

    def __init__(self, model: nn.Module, parameters: list[flow.Tensor], lr: float):
        super().__init__()
        self.model = model
        self.add_optimizer(optim.AdamW(parameters, lr=lr))

    def build(self, tokens: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        """Return the loss."""
        loss = self.model.loss(tokens, targets)
        loss.backward()
        return loss


class Validation(nn.Graph):
    """The loss alone.

    Args:
        model: it.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    @flow.no_grad()
    def build(self, tokens: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        """Return the loss."""
        return self.model.loss(tokens, targets)


def train(
    step: nn.Graph, text: np.ndarray, spec: models.Parallel, steps: int, write_text: Callable[[str], None]
) -> None:
    """Take some steps on batches of a text."""
    random = np.random.default_rng(0)
    for number in range(steps):
        loss = step(*map(spec.place, batch(text, random)))
        if number % 50 == 0 or number == steps - 1:
            write_text(f"step {number}: {loss.item():.3f} nats per byte")


def score(model: nn.Module, text: np.ndarray, spec: models.Parallel) -> float:
    """Return the loss on 8 batches of a text, in nats per byte."""
    graph, random = Validation(model), np.random.default_rng(1)
    return float(np.mean([graph(*map(spec.place, batch(text, random))).item() for _ in range(8)]))


def run(out: Path, base_steps: int, steps: int, write_text: Callable[[str], None] = print) -> tuple[float, float]:
    """Return the loss on held-out documentation, before and after LoRA.

    Args:
        out: a folder for `base`, the Llama; `adapter`; and `tuned`, the sum of both.
        base_steps: on sources, of all parameters.
        steps: on documentation, of the adapter.
        write_text: takes lines on the progress.
    """
    flow.manual_seed(0)
    text = documentation()
    known, unknown = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    config = LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4
    )
    spec = models.Parallel(data=4, tensor=2, device="cpu")
    base = models.parallelize(Llama(config), spec)
    write_text("all parameters, on Python's sources")
    train(Step(base, list(base.parameters()), 3e-3), sources(), spec, base_steps, write_text)
    models.save_pretrained(base, out / "base")

    model = models.from_pretrained(out / "base", spec)
    before = score(model, unknown, spec)
    model.train()
    lora.attach(model, ["*.attention.*", "*.mlp.*"], rank=8, alpha=16.0)
    trained = lora.parameters(model)
    share = sum(p.numel() for p in trained) / sum(p.numel() for p in model.parameters())
    write_text(f"the adapter, {share:.0%} of all parameters, on documentation; without it {before:.3f} nats per byte")
    train(Step(model, trained, 5e-3), known, spec, steps, write_text)
    lora.save(model, out / "adapter", base=str(out / "base"))
    models.save_pretrained(lora.merge(model), out / "tuned")
    return before, score(models.from_pretrained(out / "tuned", spec), unknown, spec)


def main() -> None:
    """Run the example, and fail where it does not reach its score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/lora"))
    parser.add_argument("--base-steps", type=int, default=300)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    before, after = run(options.out, options.base_steps, options.steps)
    gain = before - after
    print(f"documentation: {before:.3f} nats per byte by the base, {after:.3f} tuned: {gain:.3f} less")
    if gain < LEAST_GAIN:
        sys.exit(f"the adapter gains {gain:.3f} nats per byte, and must gain {LEAST_GAIN}")


if __name__ == "__main__":
    main()
