"""A configuration of a small run, for tests of the command."""

from sbpjax import models, optim
from sbpjax.train import Checkpoints, Evaluation, Trainer
from sbpjax.train.config import LazyCall
from tests.train.cases import TOWER, Points, Tower


def table():
    """Return the table of the model."""
    return TOWER


def falling(step):
    """Return the factor of the rate at a step."""
    return 1 / (1 + step)


seed = 3
trainer = LazyCall(Trainer)(
    model=LazyCall(Tower)(drop=0.1),
    optimizer=LazyCall(optim.AdamW, partial=True)(lr=1e-2, weight_decay=0.1),
    schedule=falling,
    data=LazyCall(Points)(samples=40),
    batch_size=8,
    max_steps=4,
    parallel=LazyCall(models.Parallel)(data=2, device="cpu"),
    sharding=LazyCall(table)(),
    hooks={
        "validation": LazyCall(Evaluation)(data=LazyCall(Points)(samples=16), every=2),
        "checkpoints": LazyCall(Checkpoints)(every=2),
    },
    out="run",
    log_every=1,
)
