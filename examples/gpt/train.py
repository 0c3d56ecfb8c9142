"""Train the GPT: ``python -m examples.gpt.train`` (or ``make demo``).

    --layout single | dp | tp | 2d     one device, data parallel, tensor parallel, or both on 2 × 4 devices (the
    default)
    --accumulate K                     a batch as K micro-batches, their gradients reduced once
    --zero 1 | 2 | 3                   optimizer state, gradients and parameters divided over the data-parallel ranks
    --amp                              matrices in bfloat16
    --checkpointing                    compute a block's activations again for its backward instead of keeping them
    --no-block-scan                    trace and compile every block by itself
    --resume                           continue from the last checkpoint if there is one, with the same bits as an
                                       uninterrupted run; a restart by the launcher does so by itself
    --explain                          print the communication of a step, and stop

Several processes run it too: ``python -m sbpjax.distributed.launch --nproc_per_node 2 --cpu_devices 4 -m
examples.gpt.train --pipeline 2``.

The run leaves `loss.png`, `losses.csv`, `sample.txt` and the last checkpoint in its output directory.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

# Eight devices in all, before the first tensor.
os.environ.setdefault("SBPJAX_CPU_DEVICES", str(8 // int(os.environ.get("WORLD_SIZE", "1"))))

import sbpjax as flow
from examples.gpt.data import Corpus, decode, encode, load_corpus
from examples.gpt.model import GPT, GPTConfig
from examples.gpt.report import History, console, progress_bar
from examples.gpt.sharding import LAYOUTS, Layout
from sbpjax import nn, optim, utils


@dataclass(frozen=True)
class Options:
    """A run.

    Attributes:
        layout: a name of `sharding.LAYOUTS`.
        steps: how many in all, those before a resume included.
        batch: sequences per step.
        lr: peak learning rate.
        warmup: steps of linear rise; then a cosine falls to a tenth.
        clip: largest norm of the gradient.
        seed: of the initial parameters and the batches.
        eval_every: steps between validation losses and checkpoints.
        eval_batches: batches of a validation loss.
        model: the model's size.
        accumulate: into how many micro-batches a batch is split.
        zero: divided over the data-parallel ranks: 1 optimizer state, 2 gradients too, 3 parameters too.
        amp: compute matrix products in bfloat16.
        checkpointing: keep only the inputs of blocks for the backward pass.
        block_scan: trace equal blocks once; True compiles them as one loop however few they are.
        pipeline: into how many stages the blocks are cut; the stages share the micro-batches of a batch.
    """

    layout: str = "2d"
    steps: int = 400
    batch: int = 32
    lr: float = 2e-3
    warmup: int = 50
    clip: float = 1.0
    seed: int = 1
    eval_every: int = 100
    eval_batches: int = 4
    model: GPTConfig = GPTConfig()
    accumulate: int = 1
    zero: int = 0
    amp: bool = False
    checkpointing: bool = False
    block_scan: bool | None = None
    pipeline: int = 1


class TrainGraph(nn.Graph):
    """One training step as one program: forward, backward, clipping, update; the schedule steps after each call.

    Args:
        model: the model.
        optimizer: of its parameters.
        scheduler: of the learning rate.
        options: the run.
    """

    def __init__(self, model: GPT, optimizer: optim.Optimizer, scheduler: optim.lr_scheduler.LRScheduler, options):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer, lr_sch=scheduler)
        self.config.set_clip_grad_norm(options.clip)
        self.config.set_gradient_accumulation_steps(options.accumulate)
        if options.zero:
            self.config.enable_zero(True, stage=options.zero)
        if options.amp:
            self.config.enable_amp(True, dtype=flow.bfloat16)
        if options.checkpointing:
            for block in self.model.blocks:
                block.to(nn.graph.GraphModule).activation_checkpointing = True
        if options.block_scan is not None:
            self.config.enable_block_scan(options.block_scan)

    def build(self, tokens: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        """Return the loss of one micro-batch, differentiated."""
        loss = self.model.loss(tokens, targets)
        loss.backward()
        return loss


class EvalGraph(nn.Graph):
    """The loss of one batch, or without targets its logits.

    Args:
        model: the model, the very one that is trained.
        options: the run.
    """

    def __init__(self, model: GPT, options):
        super().__init__()
        self.model = model
        if options.amp:
            self.config.enable_amp(True, dtype=flow.bfloat16)

    @flow.no_grad()
    def build(self, tokens: flow.Tensor, targets: flow.Tensor | None = None) -> flow.Tensor:
        """Return the mean cross entropy of `targets`, or the logits `(B, T, V)`."""
        return self.model(tokens) if targets is None else self.model.loss(tokens, targets)


class Trainer:
    """A model, its optimizer and schedule on one layout, with the graphs of a training step and of a validation loss.

    Args:
        options: the run.
        corpus: the text.
    """

    def __init__(self, options: Options, corpus: Corpus):
        self.options, self.corpus = options, corpus
        self.layout: Layout = replace(LAYOUTS[options.layout], stages=options.pipeline)
        flow.manual_seed(options.seed)
        self.model = GPT(options.model)
        self.layout.lay_out(self.model)
        matrices = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = optim.AdamW(groups, lr=options.lr, betas=(0.9, 0.95))
        factor = optim.lr_scheduler.warmup_cosine(options.warmup, options.steps, final=0.1)
        self.scheduler = optim.lr_scheduler.LambdaLR(self.optimizer, factor)
        self.step = 0
        self.train_graph = TrainGraph(self.model, self.optimizer, self.scheduler, options)
        self.eval_graph = EvalGraph(self.model, options)

    def batch(self, step: int) -> tuple[flow.Tensor, flow.Tensor]:
        """Return inputs and targets of a training step, laid out."""
        tokens, targets = self.corpus.batch(step, self.options.batch, self.options.model.context)
        return self.layout.place(tokens), self.layout.place(targets)

    def advance(self) -> flow.Tensor:
        """Do the next step and return its loss, which may still be computing."""
        loss = self.train_graph(*self.batch(self.step))
        self.step += 1
        return loss if self.options.accumulate == 1 else loss.mean()  # of micro-batches, (K,)

    def validate(self) -> float:
        """Return the mean validation loss."""
        self.model.eval()
        batches = self.corpus.validation_batches(
            self.options.eval_batches, self.options.batch, self.options.model.context
        )
        losses = [self.eval_graph(self.layout.place(x), self.layout.place(y)) for x, y in batches]
        self.model.train()
        return float(np.mean([loss.item() for loss in losses]))

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        state = {
            "step": self.step,
            "options": asdict(self.options),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "random": flow.get_rng_state(),
        }
        utils.save(state, path)

    def load(self, path: Path) -> None:
        """Resume from a checkpoint, in any layout."""
        state = utils.load(path, global_src_rank=0)  # global, as the parameters are
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        flow.set_rng_state(state["random"])
        self.step = state["step"]

    def sample(self, prompt: str, length: int, temperature: float = 0.8) -> str:
        """Return `prompt` followed by `length` bytes of the model's own.

        The context window is always full (padded at the end, and cut off), so one compiled program serves every byte.
        """
        context = self.options.model.context
        random = np.random.default_rng(self.options.seed)
        text = encode(prompt)
        forward = EvalGraph(self.model, self.options)
        self.model.eval()
        for _ in range(length):
            window = text[-context:]
            padded = np.zeros((1, context), np.int64)
            padded[0, : len(window)] = window
            whole = [flow.sbp.broadcast] * len(self.layout.axes)
            tokens = flow.tensor(padded, placement=self.layout.placement, sbp=whole)
            logits = forward(tokens).float().numpy()[0, len(window) - 1].astype(np.float64) / temperature
            odds = np.exp(logits - logits.max())
            text = np.append(text, random.choice(len(odds), p=odds / odds.sum()))
        self.model.train()
        return decode(text)


def train(options: Options, out: Path, resume: bool = False, text: str | None = None) -> Trainer:
    """Run the training and leave its results in `out`; return the trainer.

    Args:
        options: the run.
        out: the output directory.
        resume: go on from the checkpoint in `out`, if there is one.
        text: a file to train on instead of the language reference.
    """
    out.mkdir(parents=True, exist_ok=True)
    corpus = load_corpus(text, options.seed)
    trainer = Trainer(options, corpus)
    if resume and any((out / name).exists() for name in ("checkpoint", "checkpoint.old")):
        trainer.load(out / "checkpoint")
    first_rank = flow.env.get_rank() == 0  # it writes and prints; all take part in reading global tensors
    console.quiet = not first_rank
    history = History(out / "losses.csv", upto=trainer.step)
    parameters = sum(p.numel() for p in trainer.model.parameters())
    console.print(
        f"GPT of {parameters:,} parameters on {len(corpus.train):,} bytes, layout [bold]{options.layout}[/] on "
        f"{trainer.layout.placement}; byte frequencies alone: {corpus.unigram_entropy():.3f} nats"
    )
    tokens_per_step = options.batch * options.model.context
    with progress_bar() as bar:
        task = bar.add_task("training", total=options.steps, completed=trainer.step, loss=float("nan"), speed=0.0)
        started = printed = time.perf_counter()
        first = trainer.step
        while trainer.step < options.steps:
            loss = trainer.advance().item()
            history.train[trainer.step] = loss
            now = time.perf_counter()
            if trainer.step == first + 1:
                bar.console.print(f"step {trainer.step:5d}   training {loss:.4f}   compiled in {now - started:.1f} s")
                started = printed = now
            done = trainer.step - first - 1
            speed = done * tokens_per_step / max(now - started, 1e-9)
            bar.update(task, completed=trainer.step, loss=loss, speed=speed)
            if not bar.console.is_terminal and now - printed > 8:  # without a terminal there is no bar
                bar.console.print(f"step {trainer.step:5d}   training {loss:.4f}   {speed:,.0f} tokens/s")
                printed = now
            if trainer.step % options.eval_every == 0 or trainer.step == options.steps:
                history.valid[trainer.step] = valid = trainer.validate()
                bar.console.print(f"step {trainer.step:5d}   training {loss:.4f}   validation {valid:.4f}")
                if first_rank:
                    history.save()
                trainer.save(out / "checkpoint")
    title = f"GPT on the Python language reference, layout {options.layout}"
    if first_rank:
        history.plot(out / "loss.png", title, corpus.unigram_entropy())
    return trainer


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = Options()
    parser.add_argument("--layout", choices=sorted(LAYOUTS), default=defaults.layout)
    parser.add_argument("--steps", type=int, default=defaults.steps)
    parser.add_argument("--batch", type=int, default=defaults.batch)
    parser.add_argument("--text", help="a text file to train on instead of Python's language reference")
    parser.add_argument("--out", type=Path, help="output directory (default: runs/gpt-LAYOUT)")
    parser.add_argument("--accumulate", type=int, default=defaults.accumulate, help="micro-batches per batch")
    parser.add_argument("--zero", type=int, choices=(1, 2, 3), default=defaults.zero, help="stage of ZeRO")
    parser.add_argument("--amp", action="store_true", help="matrices in bfloat16")
    parser.add_argument("--checkpointing", action="store_true", help="compute activations again for the backward pass")
    parser.add_argument("--no-block-scan", action="store_true", help="trace and compile every block by itself")
    parser.add_argument(
        "--pipeline", type=int, default=defaults.pipeline, help="stages; 4 micro-batches if none are set"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in the output directory")
    parser.add_argument("--explain", action="store_true", help="print the communication of one step, and stop")
    parser.add_argument("--prompt", default="The ", help="the start of the sample")
    args = parser.parse_args()
    chosen = {name: getattr(args, name) for name in ("layout", "steps", "batch", "accumulate", "zero", "pipeline")}
    if args.pipeline > 1 and args.accumulate == 1:
        chosen["accumulate"] = 4
    flags = {name: True for name in ("amp", "checkpointing") if getattr(args, name)}
    options = replace(defaults, **chosen, **flags, block_scan=False if args.no_block_scan else defaults.block_scan)
    out = args.out or Path("runs") / f"gpt-{args.layout}"
    if args.explain:
        trainer = Trainer(options, load_corpus(args.text, options.seed))
        trainer.train_graph.build_graph(*trainer.batch(0))
        print(trainer.train_graph.explain(check=False))
        return
    again = int(os.environ.get("RESTART_COUNT", "0")) > 0
    trainer = train(options, out, args.resume or again, args.text)
    sample = trainer.sample(args.prompt, 400)
    if flow.env.get_rank() == 0:
        (out / "sample.txt").write_text(sample)
    console.rule("sample")
    console.print(sample, markup=False, highlight=False)
    console.rule()
    console.print(f"loss plot, losses, sample and checkpoint: {out.resolve()}", soft_wrap=True)


if __name__ == "__main__":
    main()
