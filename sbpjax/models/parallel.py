"""`Parallel`: device mesh of a model: the degree of each kind of parallelism, and the sbp of a tensor on it.

    >>> spec = flow.models.Parallel(data=2, tensor=4, device="cpu")
    >>> spec.placement
    sbpjax.placement(type="cpu", ranks=[[0, 1, 2, 3], [4, 5, 6, 7]])
    >>> spec.batch  # data, tensor
    [sbpjax.sbp.split(dim=0), sbpjax.sbp.broadcast]
    >>> spec.sbp(("heads", "width"))  # of a matrix whose rows are heads
    [sbpjax.sbp.broadcast, sbpjax.sbp.split(dim=0)]

A dim of a tensor has a *logical axis*, and a table gives the mesh axis that splits dims of a logical axis. That is all
of parallelism that a model's tables and this file have to agree on:

    logical axis                 mesh axis
    batch                        data, fsdp and expert: each rank has some of the sequences
    positions                    context: each rank has a part of every sequence
    heads, kv_heads, hidden,     tensor: each rank has some heads, some hidden units, some of the vocabulary; the
    vocab                        product after them sums over ranks (Megatron-LM's pairs of matrices)
    width                        fsdp: parameters are stored divided, and gathered for use (ZeRO 3)
    rows                         fsdp: tables of recommenders; each rank keeps its own rows
    columns                      tensor: each rank has a part of every row of a table
    experts                      expert: each rank has some of a mixture's experts and some of the sequences, whose
                                 tokens go to their experts' ranks and back
    replicas                     data: each rank has its own copy of the parameters (`train.Replicas`)

A new logical axis is a new rule: ``Parallel(..., axis_rules=AXIS_RULES | {"classes": "tensor"})``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import cuda, sbp
from sbpjax.errors import PlacementError, count_text
from sbpjax.utils.host import explain_arguments

# Outermost first: what is innermost has the fastest links.
AXES = ("pipeline", "data", "fsdp", "context", "expert", "tensor")
BATCH = ("data", "fsdp", "expert")
# How attention reads keys of other ranks, by ``context_by``: the name of its strategy.
CONTEXT_BY = {"ring": "ring", "ulysses": "heads"}
_USUAL = {"sequence": False, "context_by": "ring"}

AXIS_RULES: Mapping[str, str | None] = {
    "vocab": "tensor",
    "heads": "tensor",
    "kv_heads": "tensor",
    "hidden": "tensor",
    "experts": "expert",
    "width": "fsdp",
    "rows": "fsdp",
    "columns": "tensor",
    "replicas": "data",
    "whole": None,
}


@explain_arguments
@dataclass(frozen=True, kw_only=True)
class Parallel:
    """The degree of each kind of parallelism; their product is the number of devices.

    Attributes:
        data: copies of the model, each with a part of the batch.
        fsdp: parts of the batch too; parameters, gradients and optimizer state are divided among them.
        tensor: parts of every matrix.
        sequence: between the matrices, where the stream is whole on each rank of `tensor`, divide its positions over
            these ranks: norms and dropout of a part each (Megatron-LM's sequence parallelism). A flag, no axis.
        context: parts of every sequence.
        context_by: how attention reads the keys of other parts: ``"ring"`` sends keys and values from rank to rank,
            ``"ulysses"`` brings each rank some heads of all positions.
        expert: parts of the experts of a mixture, and of the batch.
        pipeline: stages, each with some of the blocks.
        ranks: the devices' numbers, in the order of the axes; by default the first ones.
        device: ``"cpu"``, ``"cuda"`` or ``"tpu"``; by default ``"cuda"`` where there is a GPU. Or a machine that is not
            there, such as ``"v5p:4x4x4"``, see `placement.topology`: the axes then share all its devices.
        axis_rules: logical axis to mesh axis that splits its dims; None for none.

    Raises:
        PlacementError: an axis is no whole number of at least 1, or there are too few devices.

    Example:
        >>> spec = flow.models.Parallel(fsdp=2, tensor=2, device="cpu")
        >>> spec.sbp(("hidden", "width"))
        [sbpjax.sbp.split(dim=1), sbpjax.sbp.split(dim=0)]
    """

    data: int = 1
    fsdp: int = 1
    tensor: int = 1
    sequence: bool = False
    context: int = 1
    context_by: str = "ring"
    expert: int = 1
    pipeline: int = 1
    ranks: Sequence[int] | None = None
    device: str | None = None
    axis_rules: Mapping[str, str | None] = field(default_factory=lambda: AXIS_RULES)

    def __post_init__(self) -> None:
        for axis in AXES:
            size = getattr(self, axis)
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                self.refuse(f"{axis}={size!r}", "an axis has a whole number of parts, at least 1", f"{axis}=1")
        if not isinstance(self.sequence, bool):
            rule = "sequence is a flag: positions are divided over the ranks of tensor, between its matrices"
            self.refuse(
                f"sequence={self.sequence!r}", rule, "sequence=True, tensor=2; or context=2, an axis of its own"
            )
        if self.context_by not in CONTEXT_BY:
            rule = f"context_by is one of {', '.join(CONTEXT_BY)}"
            self.refuse(f"context_by={self.context_by!r}", rule, "context_by='ring'")
        for name, axis in self.axis_rules.items():
            if axis is not None and axis not in AXES:
                self.refuse(f"logical axis {name!r} on {axis!r}", f"mesh axes are {', '.join(AXES)}", f"{name!r}: None")
        if self.ranks is not None and len(set(self.ranks)) != self.devices:
            seen = f"ranks={list(self.ranks)}, {count_text(len(set(self.ranks)), 'device')}"
            self.refuse(seen, f"{self.equation}: as many devices, each once", f"ranks=range({self.devices})")

    @property
    def devices(self) -> int:
        """How many devices take part."""
        return int(np.prod([getattr(self, axis) for axis in AXES]))

    @property
    def equation(self) -> str:
        """The product of the axes with its value: ``data=2 × tensor=4 = 8``."""
        used = [f"{axis}={getattr(self, axis)}" for axis in AXES if getattr(self, axis) > 1]
        return used[0] if len(used) == 1 else f"{' × '.join(used) or 'no axis'} = {self.devices}"

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the placement of a stage, outermost first; ``data`` where nothing is divided."""
        return tuple(a for a in AXES if getattr(self, a) > 1 and a != "pipeline") or ("data",)

    @property
    def placements(self) -> list[flow.placement]:
        """The placement of each stage.

        Raises:
            PlacementError: there are too few devices.
        """
        ranks = np.arange(self.devices) if self.ranks is None else np.array(list(self.ranks))
        sizes = [getattr(self, axis) for axis in self.axes]
        device = self.device or ("cuda" if cuda.is_available() else "cpu")
        if ":" in device:
            grid = flow.placement.topology(device, [self.pipeline, *sizes]).ranks if self.ranks is None else ranks
            stages = grid.reshape(self.pipeline, *sizes)
            return [flow.placement.topology(device, ranks=stage) for stage in stages]
        there = len(flow.placement.all(device).ranks.reshape(-1))
        if there <= ranks.max():
            fix = f"axes whose product is at most {there}; on CPU, SBPJAX_CPU_DEVICES sets the number of devices"
            rule = f"{self.equation} devices, with numbers up to {ranks.max()}"
            self.refuse(f"{count_text(there, 'device')} of type {device!r}", rule, fix)
        return [flow.placement(device, stage) for stage in ranks.reshape(self.pipeline, *sizes)]

    @property
    def placement(self) -> flow.placement:
        """The placement of the first stage, where tokens go in."""
        return self.placements[0]

    @property
    def batch(self) -> list[Any]:
        """The nd-sbp of tokens, targets and masks `(B, T)`: B split over data, fsdp and expert, T over context."""
        dims = {**dict.fromkeys(BATCH, 0), "context": 1}
        return [sbp.split(dims[axis]) if axis in dims else sbp.broadcast for axis in self.axes]

    def sbp(self, logical_axes: Sequence[str]) -> list[Any]:
        """Return the nd-sbp of a tensor whose dims have these logical axes.

        An axis splits one dim of a tensor, the first that it may; it is broadcast on all others.

        Raises:
            PlacementError: a logical axis has no rule.
        """
        for name in logical_axes:
            if name not in self.axis_rules:
                rule = f"logical axes are {', '.join(self.axis_rules)}"
                fix = f"Parallel(..., axis_rules=AXIS_RULES | {{{name!r}: 'tensor'}})"
                self.refuse(f"a dim of logical axis {name!r}", rule, fix)
        dims = {}
        for dim, name in enumerate(logical_axes):
            dims.setdefault(self.axis_rules[name], dim)
        return [sbp.split(dims[axis]) if axis in dims else sbp.broadcast for axis in self.axes]

    def place(self, value: Any, stage: int = 0) -> flow.Tensor:
        """Return a batch as a global tensor, split over data, fsdp and expert, and its positions over context.

        Args:
            value: a NumPy array `(B, T)` or `(B,)` that every process has whole.
            stage: of a pipeline: which stage reads it; -1 for the last, which reads the targets.

        Example:
            >>> flow.models.Parallel(data=2, device="cpu").place([[1, 2], [3, 4]]).sbp
            (sbpjax.sbp.split(dim=0),)
        """
        value = np.asarray(value)
        layout = [sbp.broadcast if s == sbp.split(1) and value.ndim < 2 else s for s in self.batch]
        return flow.tensor(value, placement=self.placements[stage], sbp=layout)

    def refuse(self, seen: str, rule: str, fix: str) -> None:
        """Raise the error of a spec that cannot be.

        Raises:
            PlacementError: always.
        """
        given = {axis: getattr(self, axis) for axis in AXES if getattr(self, axis) != 1}
        given |= {
            name: now
            for name, usual in (("sequence", False), ("context_by", "ring"))
            if (now := getattr(self, name)) != usual
        }
        operation = f"Parallel({', '.join(f'{axis}={size!r}' for axis, size in given.items())})"
        raise PlacementError(operation, seen, rule, fix)
