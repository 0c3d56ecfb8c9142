"""Train a small Mixtral on Python's language reference, byte by byte, with its experts on four ranks.

    SBPJAX_CPU_DEVICES=8 NPROC=32 python -m examples.experts.train --out runs/experts

Eight devices as ``data=2 × expert=4``: the batch is split over all eight, each rank has two of the eight experts, and
the tokens go to the ranks of their experts and back by all-to-all. The run ends with an error unless the validation
loss is at most `SCORE`; a model of byte frequencies has about 3.1.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sbpjax as flow
from examples.gpt.data import VOCAB_SIZE, load_corpus
from examples.gpt.report import History
from sbpjax import models, nn, optim
from sbpjax.models.mixtral import Mixtral, MixtralConfig

SCORE = 2.0  # nats per byte of the validation part
CONFIG = MixtralConfig(
    vocab_size=VOCAB_SIZE,
    hidden_size=96,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    num_local_experts=8,
    num_experts_per_tok=2,
    capacity_factor=1.5,  # each expert has rows for one and a half times its even share of a sequence
    output_router_logits=True,  # adds the load-balancing loss
    router_aux_loss_coef=0.01,
    router_z_loss_coef=0.001,
)


@dataclass(frozen=True)
class Options:
    """A run.

    Attributes:
        steps: of training.
        batch: sequences per step.
        context: bytes per sequence.
        lr: the highest learning rate, after `warmup` steps; it falls to a tenth along a cosine.
        warmup: steps until then.
        every: steps between two validations.
        seed: of the parameters and the batches.
    """

    steps: int = 300
    batch: int = 32
    context: int = 64
    lr: float = 6e-3
    warmup: int = 20
    every: int = 50
    seed: int = 0


class Train(nn.Graph):
    """One step.

    Args:
        model: the model.
        options: the run.
    """

    def __init__(self, model: Mixtral, options: Options):
        super().__init__()
        self.model = model
        optimizer = optim.AdamW(model.parameters(), lr=options.lr, betas=(0.9, 0.95), weight_decay=0.05)

        def factor(step: int) -> float:
            if step < options.warmup:
                return (step + 1) / options.warmup
            done = (step - options.warmup) / max(options.steps - options.warmup, 1)
            return 0.1 + 0.45 * (1 + math.cos(math.pi * min(done, 1.0)))

        self.add_optimizer(optimizer, lr_sch=optim.lr_scheduler.LambdaLR(optimizer, factor))

    def build(self, tokens: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        """Return the loss, with the terms of the routers."""
        loss = self.model.loss(tokens, targets)
        loss.backward()
        return loss


class Validate(nn.Graph):
    """The cross entropy alone.

    Args:
        model: the model.
    """

    def __init__(self, model: Mixtral):
        super().__init__()
        self.model = model

    @flow.no_grad()
    def build(self, tokens: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        """Return nats per byte."""
        return models.layers.token_loss(self.model(tokens), targets)


class Run:
    """A model with its graphs.

    Args:
        options: the run.
        parallel: the mesh.
        config: the model's size.
    """

    def __init__(self, options: Options, parallel: models.Parallel, config: MixtralConfig):
        flow.manual_seed(options.seed)
        self.options, self.parallel, self.corpus = options, parallel, load_corpus(seed=options.seed)
        self.model = models.parallelize(Mixtral(config), parallel)
        self.train, self.validate = Train(self.model, options), Validate(self.model)

    def step(self, number: int) -> float:
        """Return the loss of one step."""
        pair = self.corpus.batch(number, self.options.batch, self.options.context)
        return self.train(*map(self.parallel.place, pair)).item()

    def validation(self, batches: int = 4) -> float:
        """Return the loss of the validation part, in nats per byte."""
        found = self.corpus.validation_batches(batches, self.options.batch, self.options.context)
        return float(np.mean([self.validate(*map(self.parallel.place, pair)).item() for pair in found]))


def train(options: Options, parallel: models.Parallel, config: MixtralConfig, out: Path) -> float:
    """Train, write losses, plot and weights into a folder, and return the last validation loss."""
    out.mkdir(parents=True, exist_ok=True)
    run = Run(options, parallel, config)
    history, start = History(out / "losses.csv"), time.monotonic()
    for number in range(options.steps):
        history.train[number + 1] = run.step(number)
        if number == 0:
            print(run.train.traffic())
        if (number + 1) % options.every == 0 or number + 1 == options.steps:
            history.valid[number + 1] = run.validation()
            output = f"training {history.train[number + 1]:.3f}, validation {history.valid[number + 1]:.3f}"
            print(f"step {number + 1}: {output}, {time.monotonic() - start:.0f} s", flush=True)
    history.save()
    history.plot(out / "loss.png", f"Mixtral with experts, {parallel.equation}", run.corpus.unigram_entropy())
    models.save_pretrained(run.model, out / "model")
    return history.valid[options.steps]


def main() -> None:
    """Train, print the results, and fail if the score is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/experts"), help="a folder for losses, plot and weights")
    parser.add_argument("--steps", type=int, default=Options.steps)
    given = parser.parse_args()
    score = train(Options(steps=given.steps), models.Parallel(data=2, expert=4, device="cpu"), CONFIG, given.out)
    print(f"validation loss {score:.3f}, wanted at most {SCORE}; {given.out.resolve()}")
    if score > SCORE:
        sys.exit(1)


if __name__ == "__main__":
    main()
