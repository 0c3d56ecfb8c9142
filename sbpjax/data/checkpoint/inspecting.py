"""List the tensors of a checkpoint without loading them: one process reads one small file."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .reader import Contents, nbytes


@dataclass(frozen=True)
class Entry:
    """One tensor of a checkpoint.

    Attributes:
        name: its name, e.g. ``model/layer.weight``.
        shape: its logical shape.
        dtype: its dtype.
        sbp: the nd-sbp that it had when it was saved, e.g. ``"(S0, B)"``; None for a local tensor.
        ranks: the ranks of the placement that it had.
        nbytes: the bytes of its logical value.
        axis_names: the names of that placement's axes; None for the default ones.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    sbp: str | None
    ranks: list | None
    nbytes: int
    axis_names: tuple[str, ...] | None = None


def inspect(path: str | os.PathLike) -> list[Entry]:
    """Return the tensors of a checkpoint, in the order in which they were saved.

    Raises:
        CheckpointError: there is no complete checkpoint.
    """
    entries = []
    for name, facts in Contents(path).tensors.items():
        place = facts.get("placement", {})
        names = tuple(place["axis_names"]) if "axis_names" in place else None
        shape, size = tuple(facts["shape"]), nbytes(facts)
        entries.append(Entry(name, shape, facts["dtype"], facts.get("sbp"), place.get("ranks"), size, names))
    return entries
