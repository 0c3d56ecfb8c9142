"""`Repeat`: the update that comes again, for which nothing has to be gathered anew.

Which parameters have a gradient, where each lies, which state belongs to it and which of them are updated by one rule:
a step asks all that of every parameter, and for small models it costs more than the update's own call. The next step
mostly finds what the last one found:

    changes.now            moved by whatever is done to groups, options and state
    (`_core.tensor.storage.version_counter`) the same parameters    have a gradient _ver or stamp, _array  of every
    tensor that is written: as the last step left them

Where any of it differs, the step gathers as the first one did. A new learning rate is not a difference: numbers are
read in every step.
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
    """Return which parameter it is, and whether its gradient is one of rows."""
    return -id(param) if param.grad.__class__ is RowGrad else id(param)


class Repeat:
    """The update of an optimizer's last step; copies and pickles of it are empty."""

    __slots__ = ("_mark", "_updated", "_updates", "_versions", "_written")

    def __init__(self) -> None:
        self._mark: object = None
        self._updates: list[Update] = []
        self._updated: list[int] = []
        self._written: list[Tensor] = []
        self._versions: list[int] = []

    def __reduce__(self) -> tuple:
        return Repeat, ()

    def keep(self, mark: object, updated: Sequence[Tensor], updates: list[Update]) -> None:
        """Remember a step.

        Args:
            mark: `changes.now` as it was before anything was gathered for it.
            updated: the parameters that had a gradient.
            updates: what it ran.
        """
        if updates is self._updates:
            self._versions = [count + 1 for count in self._versions]
        else:
            self._updates, self._updated = updates, list(map(_kind, updated))
            jobs = [job for update in updates for job in update.jobs]
            self._written = [t for job in jobs for group in ([job.step], job.params, *job.states) for t in group]
            self._versions = write_counts(self._written)
        self._mark = mark if mode.touch is None else None

    def of(self, updated: Sequence[Tensor]) -> list[Update] | None:
        """Return what a step runs that updates these parameters, None if it has to be gathered."""
        if changes.now is not self._mark or mode.touch is not None or list(map(_kind, updated)) != self._updated:
            return None
        versions = write_counts(self._written)
        return self._updates if versions == self._versions and -1 not in versions else None
