"""A run on two processes, each as a host of its own: ``python -m tests.train.hooks.two_hosts FOLDER LAST AXIS``.

Resumes, trains to step LAST of 6, and ends without a checkpoint, as a run that is killed there. AXIS ``fsdp``
divides parameters and optimizer state over the processes, ``data`` the batch alone.
"""

import os
import sys
from pathlib import Path

from sbpjax import models
from sbpjax.train import Checkpoints, Hook, Snapshots
from sbpjax.utils import host
from tests.train.cases import trainer


class Death(Hook):
    """Ends the run after a step, when its snapshot is written."""

    order = 9

    def after_step(self, trainer):
        if trainer.step == int(sys.argv[2]) < 6:
            raise SystemExit(0)


def main():
    """Train; print the step at which the run goes on."""
    folder, rank = Path(sys.argv[1]), os.environ["RANK"]
    os.environ |= {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "SBPJAX_SNAPSHOT_DIR": str(folder / f"memory{rank}")}
    snapshots = Snapshots(every=1)
    made = trainer(
        folder / "run",
        hooks=[Checkpoints(every=6), snapshots, Death()],
        parallel=models.Parallel(**{sys.argv[3]: 2}, device="cpu"),
        steps=6,
        schedule=None,
    )
    made.resume()
    print(f"rank {rank} goes on at step {made.step}", flush=True)
    try:
        made.fit()
    finally:
        snapshots.after_run(made)
        host.current().exchange("all copies are sent", 0)


if __name__ == "__main__":
    main()
