"""Train the GPT on two slices with local updates (DiLoCo): ``python -m benchmarks.local_updates``.

    --steps N     training steps (default 300)
    --every H     steps between two outer steps (default 20)
    --momentum m  of the outer steps (default 0.75: the paper's 0.9 is for runs of hundreds of outer steps, not of 15)
    --layers N    blocks of the model (default 4)
    --compressed  also synchronous with gradients in bfloat16 and in float8 between slices

The same model, data and steps run twice on 2 × 4 devices: synchronous, with gradients reduced over all devices in every
step, and with local updates, where slices of four devices train apart and meet every H steps. It prints the validation
losses, and the bytes that a device receives from the other slice as the compiled programs have them.
"""

from __future__ import annotations

import argparse
import functools
import os

import numpy as np

os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")

from examples.gpt.data import Corpus, load_corpus
from examples.gpt.model import GPT, GPTConfig
from sbpjax import manual_seed, models, nn, optim
from sbpjax.train import CompressedGradients, Evaluation, OuterStep, Replicas, Trainer
from tests.support.slices import bytes_across

BATCH = 32
SLICES = 2

SHARDING = models.Sharding(
    logical_axes={
        "*.qkv.weight": ("heads", "width"),
        "*.qkv.bias": ("heads",),
        "*.out.weight": ("width", "heads"),
        "*.up.weight": ("hidden", "width"),
        "*.up.bias": ("hidden",),
        "*.down.weight": ("width", "hidden"),
        "token.weight": ("vocab", "width"),
        "position.weight": ("whole", "width"),
        "*.bias": ("width",),
        "*.weight": ("width",),
    },
    axis_sizes=lambda config: {"heads": config.heads, "width": config.width},
)


def windows(batches) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the samples of batches, `(tokens, targets)`, each `(T,)`."""
    return [sample for tokens, targets in batches for sample in zip(tokens, targets, strict=True)]


def train(
    corpus: Corpus, config: GPTConfig, steps: int, outer: OuterStep | None = None, dtype: str | None = None
) -> Trainer:
    """Return the trainer of a finished run, with local updates by an outer step, or gradients in a smaller dtype."""
    manual_seed(1)
    model: nn.Module = GPT(config)
    if outer is not None:
        model = Replicas(model, SLICES)
    if dtype is not None:
        model = CompressedGradients(model, SLICES, dtype)
    held_out = windows(corpus.validation_batches(4, BATCH, config.context))
    trainer = Trainer(
        model=model,
        optimizer=functools.partial(optim.AdamW, lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1),
        data=windows(corpus.batch(step, BATCH, config.context) for step in range(steps)),
        batch_size=BATCH,
        max_steps=steps,
        parallel=models.Parallel(data=SLICES, fsdp=4, device="cpu"),
        sharding=SHARDING,
        schedule=optim.lr_scheduler.warmup_cosine(50, steps, final=0.1),
        hooks=[Evaluation(held_out), *([outer] if outer else [])],
        log_every=20,
    )
    trainer.fit()
    return trainer


def main() -> None:
    """Parse the command line, train both ways and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--momentum", type=float, default=0.75)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--compressed", action="store_true")
    args = parser.parse_args()
    corpus, config = load_corpus(seed=1), GPTConfig(layers=args.layers)
    print("| training | validation loss | bytes from the other slice, a step |\n|---|---|---|")
    synchronous = train(corpus, config, args.steps)
    loss, across = synchronous.metrics["validation/loss"], bytes_across(synchronous.train_step.hlo(*synchronous.batch))
    print(f"| synchronous | {loss:.4f} | {across:,} |", flush=True)
    for dtype in ("bfloat16", "float8") if args.compressed else ():
        made = train(corpus, config, args.steps, dtype=dtype)
        now, sent = made.metrics["validation/loss"], bytes_across(made.train_step.hlo(*made.batch))
        print(
            f"| synchronous, {dtype} | {now:.4f} ({now / loss - 1:+.1%}) | {sent:,} (1/{across / sent:.1f}) |",
            flush=True,
        )
    outer = OuterStep(every=args.every, momentum=args.momentum)
    local = train(corpus, config, args.steps, outer)
    inner, averaging = bytes_across(local.train_step.hlo(*local.batch)), bytes_across(outer.graph.hlo())
    mean, local_loss = inner + averaging / args.every, local.metrics["validation/loss"]
    print(
        f"| local updates, H = {args.every} | {local_loss:.4f} ({local_loss / loss - 1:+.1%}) |"
        f" {inner:,} + {averaging:,} / {args.every} = {mean:,.0f} (1/{across / mean:.1f}) |"
    )


if __name__ == "__main__":
    main()
