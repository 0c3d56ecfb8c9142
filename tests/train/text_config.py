"""A configuration of a small GPT-2 on the token file ``pages``, for tests of what does not fit."""

from sbpjax import models, optim
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.train import Checkpoints, Evaluation, Trainer
from sbpjax.train.config import LazyCall
from sbpjax.train.data import PackedTokens

trainer = LazyCall(Trainer)(
    model=LazyCall(GPT2)(config=LazyCall(GPT2Config)(vocab_size=64, n_positions=16, n_embd=16, n_layer=2, n_head=2)),
    optimizer=LazyCall(optim.AdamW, partial=True)(lr=1e-3),
    data=LazyCall(PackedTokens)(file="pages", length=16),
    batch_size=8,
    max_steps=4,
    parallel=LazyCall(models.Parallel)(data=2, device="cpu"),
    options={"accumulate": 1, "amp": None, "zero": 0},
    hooks={
        "validation": LazyCall(Evaluation)(data=LazyCall(PackedTokens)(file="pages", length=16)),
        "checkpoints": LazyCall(Checkpoints)(every=2),
    },
    out="run",
)
