"""GPT-2 on Python's own text, on 2 × 2 × 2 devices: data, tensor and pipeline. See README.md."""

from examples.gpt2.data import tokens
from examples.gpt2.plot import LossPlot
from sbpjax import models, optim
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.train import Checkpoints, Evaluation, TargetMetric, Trainer
from sbpjax.train.config import LazyCall

VOCABULARY, LENGTH = 512, 64

seed = 1
steps = 400
folder = "runs/gpt2-data"
trainer = LazyCall(Trainer)(
    model=LazyCall(GPT2)(
        config=LazyCall(GPT2Config)(
            vocab_size=VOCABULARY,
            n_positions=LENGTH,
            n_embd=64,
            n_layer=2,
            n_head=4,
            embd_pdrop=0.0,
            resid_pdrop=0.0,
            attn_pdrop=0.0,
        )
    ),
    optimizer=LazyCall(optim.AdamW, partial=True)(lr=5e-3, betas=[0.9, 0.95], weight_decay=0.1),
    schedule=LazyCall(optim.lr_scheduler.warmup_cosine)(warmup=30, total="${steps}", final=0.1),
    data=LazyCall(tokens)(directory="${folder}", part="train", vocabulary=VOCABULARY, length=LENGTH),
    batch_size=16,
    max_steps="${steps}",
    parallel=LazyCall(models.Parallel)(data=2, tensor=2, pipeline=2, device="cpu"),
    options={"accumulate": 2, "clip": 1.0},
    hooks={
        "validation": LazyCall(Evaluation)(
            data=LazyCall(tokens)(directory="${folder}", part="valid", vocabulary=VOCABULARY, length=LENGTH),
            every=100,
            batches=8,
        ),
        "checkpoints": LazyCall(Checkpoints)(every=100, keep_last=2, keep_best=1, metric="validation/loss"),
        "plot": LazyCall(LossPlot)(),
        "goal": LazyCall(TargetMetric)(metric="validation/loss", at_most=4.6),
    },
    out="runs/gpt2",
)
