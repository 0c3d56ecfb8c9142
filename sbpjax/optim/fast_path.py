"""Fast path for repeated optimizer steps: reuses the arguments gathered for the last step.

A step gathers for every parameter its gradient, device or placement, state and bucket, which for small models costs
more than the update's own call. The next step mostly finds the same values:

    changes.now            (`_core.tensor.storage.version_counter`) unchanged: it moves with groups, options and state
    the same parameters    have a gradient
    _ver or stamp, _array  of every written tensor: as the last step left them

If any of it differs, the step gathers again. A new learning rate is not a difference: numbers are read in every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.storage.payload import write_counts
from sbpjax._core.tensor.storage.version_counter import changes
from sbpjax._core.tensor.tape.row_grad import RowGrad
from sbpjax.optim.rules import Bucket
from sbpjax.optim.run import Job


class Update(NamedTuple):
    """One program's part of a step.

    Attributes:
        buckets: the static facts of each run of parameters.
        jobs: the tensors, one job per bucket.
        groups: which group of parameters each bucket's numbers are from.
    """

    buckets: tuple[Bucket, ...]
    jobs: list[Job]
    groups: list[int]


def _kind(param: Tensor) -> int:
    """Return the identity of a parameter, and whether its gradient is one of rows."""
    return -id(param) if param.grad.__class__ is RowGrad else id(param)


class FastUpdate:
    """The update of an optimizer's last step; copies and pickles of it are empty."""

    __slots__ = ("_mark", "_updated", "_updates", "_versions", "_written")

    def __init__(self) -> None:
        self._mark: object = None
        self._updates: list[Update] = []
        self._updated: list[int] = []
        self._written: list[Tensor] = []
        self._versions: list[int] = []

    def __reduce__(self) -> tuple:
        return FastUpdate, ()

    def keep(self, mark: object, updated: Sequence[Tensor], updates: list[Update]) -> None:
        """Store a step.

        Args:
            mark: `changes.now` from before anything was gathered for it.
            updated: the parameters that had a gradient.
            updates: the programs that it ran.
        """
        if updates is self._updates:
            self._versions = [count + 1 for count in self._versions]
        else:
            self._updates, self._updated = updates, list(map(_kind, updated))
            jobs = [job for update in updates for job in update.jobs]
            self._written = [t for job in jobs for group in ([job.step], job.params, *job.states) for t in group]
            self._versions = write_counts(self._written)
        self._mark = mark if mode.touch is None else None

    def find_updates(self, updated: Sequence[Tensor]) -> list[Update] | None:
        """Return the stored programs of a step that updates these parameters, None on a cache miss."""
        if changes.now is not self._mark or mode.touch is not None or list(map(_kind, updated)) != self._updated:
            return None
        versions = write_counts(self._written)
        return self._updates if versions == self._versions and -1 not in versions else None
