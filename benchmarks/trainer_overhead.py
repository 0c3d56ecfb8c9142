"""What the trainer adds to a step: the CPU time of its loop with all writers, against that of a bare loop.

    NPROC=32 python -m benchmarks.trainer_overhead [--rounds 15] [--steps 20]

Both loops call the same kind of graph, made of the same model, optimizer and schedule, with the same clipping and
guard, on the same batches from the same kind of loader; the bare one is ``for batch in loader: loss =
graph(*batch)``. The trainer's has the progress bar, lines of JSON and TensorBoard's files, a record every ten steps,
checkpoints and evaluation among its hooks (not due in the rounds), and reads every loss. Rounds of both alternate in
one process; the figure is the ratio of their median CPU times (`time.process_time`, all threads), which waiting for
other processes does not count into.

That ratio is as noisy as the machine. The last line is not: the CPU time of the main thread per step where the graph is
replaced by ready losses, so that only the trainer's own work is left, as a share of the bare step.
"""

from __future__ import annotations

import argparse
import functools
import io
import itertools
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")

import numpy as np

import sbpjax as flow
from sbpjax import models, optim
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.train import Checkpoints, Evaluation, Hook, JsonLines, Trainer
from sbpjax.train.data import PackedTokens, TokenFileWriter, token_dtype
from sbpjax.train.writers import ProgressBarWriter, TensorBoard

CONFIG = GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=2, n_head=4)
BATCH = 16


def trainer_of(tokens: Path, out: Path | None, steps: int, hooks: list[Hook]) -> Trainer:
    """Return a trainer; the bare loop uses one's graph and loader, too."""
    from rich.console import Console

    flow.manual_seed(0)
    data = functools.partial(PackedTokens, tokens, length=CONFIG.n_positions)
    console = Console(file=io.StringIO(), force_terminal=True)
    writers = [] if out is None else [ProgressBarWriter(console), JsonLines(), TensorBoard()]
    some = [Evaluation(data(shuffle=False), every=10**9), Checkpoints(every=10**9)] if out is not None else []
    return Trainer(
        model=GPT2(CONFIG),
        optimizer=functools.partial(optim.AdamW, lr=1e-3, weight_decay=0.1),
        schedule=optim.lr_scheduler.warmup_cosine(10, steps),
        data=data(samples=steps * BATCH),
        batch_size=BATCH,
        max_steps=steps,
        parallel=models.Parallel(device="cpu"),
        hooks=[*some, *hooks],
        writers=writers,
        out=out,
    )


class Rounds(Hook):
    """Notes the CPU time of rounds of steps, and runs a round of the bare loop between two of them."""

    def __init__(self, steps: int, other):
        self.steps, self.other = steps, other
        self.mine: list[float] = []
        self.theirs: list[float] = []
        self.begin_s: float | None = None

    def after_step(self, trainer: Trainer) -> None:
        """End a round of this loop, run one of the other, begin the next."""
        if trainer.step % self.steps:
            return
        trainer.loss.numpy()
        now = time.process_time()
        if self.begin_s is not None:
            self.mine.append(now - self.begin_s)
        self.theirs.append(self.other())
        self.begin_s = time.process_time()


def own_work_us(tokens: Path, out: Path, steps: int = 1000) -> float:
    """Return the CPU time of the main thread in a step, apart from the graph's and the loader's."""
    made = trainer_of(tokens, out, steps, [])
    batch = [made.parallel.place(np.zeros((BATCH, CONFIG.n_positions), np.int64))] * 2
    losses = iter([made.parallel.place(np.ones((1,), np.float32)) for _ in range(steps)])
    made.train_step = lambda *batch: next(losses)
    made._stream = lambda: itertools.repeat(batch)
    made.hooks = [hook for hook in made.hooks if not isinstance(hook, (Evaluation, Checkpoints))]
    begin = time.thread_time()
    made.fit()
    return (time.thread_time() - begin) / steps * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=20, help="of a round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tokens, steps = Path(folder, "tokens"), options.steps * (options.rounds + 2)
        with TokenFileWriter(tokens, token_dtype(CONFIG.vocab_size)) as writer:
            writer.add(np.random.default_rng(0).integers(0, CONFIG.vocab_size, 200_000))
        bare = trainer_of(tokens, None, steps, [])
        batches = iter(bare.loader)

        def loop(count: int = options.steps) -> float:
            begin = time.process_time()
            for _ in range(count):
                loss = bare.train_step(*next(batches))
            loss.numpy()
            return time.process_time() - begin

        loop(1)
        rounds = Rounds(options.steps, loop)
        timed = trainer_of(tokens, Path(folder, "run"), steps - options.steps, [rounds])
        timed.fit()
        own_us = own_work_us(tokens, Path(folder, "own"))
    mine, theirs = statistics.median(rounds.mine), statistics.median(rounds.theirs[1:])
    step_ms = theirs / options.steps * 1e3
    ratios = [a / b for a, b in zip(rounds.mine, rounds.theirs[1:])]
    quartiles = statistics.quantiles(ratios, n=4)
    print(f"{len(rounds.mine)} rounds of {options.steps} steps, load {os.getloadavg()[0]:.0f}, {os.cpu_count()} cores")
    print(f"bare loop {step_ms:.2f} ms of CPU time per step, trainer {mine / options.steps * 1e3:.2f} ms")
    print(f"ratio of medians {mine / theirs:.4f}; of pairs: quartiles {quartiles[0]:.4f} to {quartiles[2]:.4f}")
    print(f"the trainer's own work {own_us:.0f} µs per step: {own_us / 1e3 / step_ms:.2%} of a bare step")


if __name__ == "__main__":
    main()
