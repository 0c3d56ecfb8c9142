"""A configuration of a run that takes a while, for tests that kill it."""

import time

from sbpjax.train import Hook
from sbpjax.train.config import LazyCall

from .run_config import seed, trainer  # noqa: F401


class Slow(Hook):
    """Makes each step last."""

    def after_step(self, trainer):
        time.sleep(0.02)


trainer = trainer.copy()
trainer.max_steps = 60
trainer.data.samples = 72  # nine batches in an epoch
trainer.hooks.checkpoints.every = 4
trainer.hooks.checkpoints.keep_best = 1
trainer.hooks.checkpoints.metric = "validation/loss"
trainer.hooks.slow = LazyCall(Slow)()
