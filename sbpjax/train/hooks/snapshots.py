"""`Snapshots`: the state of a run in host memory every few steps, for restarts and for steps with NaN.

    Trainer(hooks=[Checkpoints(every=1000), Snapshots(every=20, rewinds=3)], …)

    step 1000   checkpoint on the disk
    step 1040   snapshot in the memory of each host
    step 1052   a rank dies; the launcher starts all again, and they resume from step 1040

The copy is taken on the devices in their own time and written by a thread (`data.checkpoint.snapshots`), into a folder
in memory that the launcher names (``SBPJAX_SNAPSHOT_DIR``) and that outlives the ranks. It needs the memory of the
state once more on the devices until it is written, and three times on the hosts, each for its own devices' parts; a
state that is divided over hosts is sent to the next host as well, which keeps it twice.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sbpjax.data.checkpoint import snapshots
from sbpjax.distributed.rank_processes import MEMORY
from sbpjax.errors import CheckpointError, TrainError
from sbpjax.utils import host

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer

_log = logging.getLogger("sbpjax.train")
FOLDER = "SBPJAX_SNAPSHOT_DIR"
_RUN = re.compile(r"[0-9a-f]{16}")
_RUN_ID = "snapshots.id"  # in the run's directory: snapshots of a run that was removed are not those of a new one


class Snapshots(Hook):
    """Copy the state of the run to host memory at regular intervals.

    `Trainer.resume` takes the freshest one that serves all hosts, if it is of a later step than the latest checkpoint.
    Parts of the state that are on one host only have a copy on the next host, from which a replaced host gets them.

    Args:
        every: steps between two snapshots.
        rewinds: how often the run may go back because of a loss with NaN or infinities: model and optimizer to the
            latest snapshot before that step, and on with the data after it. The host then reads each loss one step
            late.

    Raises:
        TrainError: `every` is no number of steps.

    Example:
        >>> Snapshots(every=20).every
        20
    """

    order = 1

    def __init__(self, *, every: int = 100, rewinds: int = 0):
        if every < 1 or rewinds < 0:
            rule = "every is a number of steps, 1 at least, rewinds a number of times"
            raise TrainError("Snapshots(...)", f"every={every}, rewinds={rewinds}", rule, "every=100, rewinds=0")
        self.every, self.rewinds = every, rewinds
        self._store: snapshots.Snapshots | None = None
        self._waiting: tuple[int, Any] | None = None
        self._is_reported = self._is_failing = False

    def after_step(self, trainer: Trainer) -> None:
        """Take a snapshot if it is due, and go back if the loss of the step before is not finite."""
        if self.rewinds:
            before, self._waiting = self._waiting, (trainer.step, trainer.loss)
            if before is not None and not np.isfinite(before[1].numpy()).all():
                self._rewind(trainer, before[0])
        if trainer.step % self.every == 0 and trainer.step < trainer.max_steps:
            store = self._open(trainer)
            if not self._is_reported:
                self._report(trainer, store)
            store.wait()
            self._report_failure(store)
            store.save(trainer.step, trainer.state())

    def _rewind(self, trainer: Trainer, step: int) -> None:
        """Go back to the latest snapshot before a step; without one go on."""
        self._waiting = None
        found = self._open(trainer).latest(before=step)
        if found is None:
            return
        self.rewinds -= 1
        state = trainer.state()
        snapshots.restore(found[1], {name: state[name] for name in ("model", "optimizer", "guard") if name in state})
        trainer.write_text(
            f"the loss of step {step:,} is not finite: back to the snapshot of step {found[0]:,}, "
            f"without the batches up to step {trainer.step:,}"
        )

    def _report(self, trainer: Trainer, store: snapshots.Snapshots) -> None:
        """Write the size once it is known."""
        store.wait()
        if store.bytes:
            self._is_reported = True
            size = store.bytes * (snapshots.KEPT + 1) / 2**20
            free = shutil.disk_usage(store.folder).free / 2**20
            trainer.write_text(
                f"snapshots every {self.every:,} steps: up to {size:,.0f} MB per process, in {store.folder}, "
                f"which has {free:,.0f} MB free"
            )

    def _report_failure(self, store: snapshots.Snapshots) -> None:
        """Log the first of several snapshots that this process cannot write, and the first one that it can again."""
        if (store.failure is not None) == self._is_failing:
            return
        self._is_failing = not self._is_failing
        if self._is_failing:
            _log.warning(
                f"a snapshot cannot be written into {store.folder}: {store.failure}. Training goes on; a restart takes "
                "an earlier snapshot, or the latest checkpoint. A larger /dev/shm or fewer files in it help."
            )
        else:
            _log.warning("snapshots can be written again")

    def restore(self, trainer: Trainer, after: int) -> bool:
        """Restore the freshest snapshot of a step later than ``after`` on rank 0; return whether there is one."""
        found = self._open(trainer).latest()
        after = host.current().exchange("comparing checkpoint and snapshot", after)[0]
        if found is None or found[0] <= after:
            return False
        try:
            snapshots.restore(found[1], trainer.state())
        except CheckpointError as error:
            trainer.write_text(f"the snapshot of step {found[0]:,} does not serve: {error}")
            return False
        trainer.write_text(f"resumed from the snapshot of step {found[0]:,} in memory")
        return True

    def after_run(self, trainer: Trainer) -> None:
        """Wait until the last snapshot is complete."""
        if self._store is not None:
            self._store.wait()

    def _open(self, trainer: Trainer) -> snapshots.Snapshots:
        """Return the snapshots of the run; all processes call it."""
        if self._store is None:
            world = host.current()
            run = world.exchange("naming the snapshots", _run_id(trainer.out) if world.rank == 0 else "")[0]
            given, local = os.environ.get(FOLDER), int(os.environ.get("LOCAL_RANK", "0"))
            if given is None or trainer.out is None:  # for this process alone
                folder = Path(tempfile.mkdtemp(prefix="sbpjax-", dir=MEMORY))
                atexit.register(shutil.rmtree, folder, ignore_errors=True)
                ranks = range(world.rank, world.rank + 1)
            else:
                folder = Path(given, run)
                ranks = range(world.rank - local, world.rank - local + int(os.environ["LOCAL_WORLD_SIZE"]))
            epoch = int(os.environ.get("SBPJAX_JOB_EPOCH") or os.environ.get("RESTART_COUNT", "0"))
            self._store = snapshots.Snapshots(folder, epoch, ranks)
            if given is not None and trainer.out is not None:
                if local == 0:
                    self._store.remove_other_runs(_RUN)
                if world.size > len(ranks):
                    self._store.connect_hosts()
        return self._store


def _run_id(out: Path | None) -> str:
    """Return the name of the run's snapshots, kept in its directory."""
    fresh = secrets.token_hex(8)
    if out is None:
        return fresh
    path = out / _RUN_ID
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(fresh)
    return path.read_text()
