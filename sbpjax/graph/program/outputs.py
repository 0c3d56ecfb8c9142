"""`Outputs`: writes a program's new state into its tensors, and rebuilds its results.

Under `jax.debug_nans` and `jax.debug_infs` a bad value raises, and the state is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sbpjax._core.compiler import conversions
from sbpjax._core.jax_private import check_special
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.traced import TracedLayout
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.exchange import Plan, plan_writes, put_all, write_atomically
from sbpjax._core.tensor.storage.payload import put
from sbpjax._core.tensor.storage.storage import drop_own_cell
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.escaped_tensors import Output
from sbpjax.errors import NanError
from sbpjax.sbp import Layout, algebra

from .slots import StateSlot


@dataclass
class Outputs:
    """The outputs of a program.

    Attributes:
        slots: the inputs of the program that are state.
        written: the numbers of the slots that it writes, in the order of its first outputs.
        layouts: the layouts of all outputs; None on one device.
        results: the function's result without its tensors.
        are_global: for every tensor of the result whether it is global.
        elsewhere: number of such a tensor → its requested layout on another placement.
        local_state: whether the state is local, though the program runs on a placement.
        left: the storage of further outputs, the last ones, and of constants, in every run.
        plain: whether every tensor of the state is an input of its own, in its own layout.
    """

    slots: list[StateSlot]
    written: list[int]
    layouts: Sequence[Layout | None]
    results: tree.Skeleton
    are_global: list[bool]
    elsewhere: Mapping[int, TracedLayout] = field(default_factory=dict)
    local_state: bool = False
    left: list[Output] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._count = len(self.written)
        self._whole: list = list(self.layouts[: self._count])
        self.state_layouts = [None] * self._count if self.local_state else self._whole
        self.plain = all(slot.own and slot.places == (i,) for i, slot in enumerate(self.slots))

    @property
    def single(self) -> tuple | None:
        """The layout of the result, in a tuple, if the function returns one tensor as it comes; else None."""
        if self.left or self.results.structure is not tree.LEAF or self.results.static != [None]:
            return None
        layout = self.layouts[-1]
        return (layout,) if (layout is None or self.are_global[0]) and not self.elsewhere else None

    def plan(self, tensors: list[Tensor]) -> Plan | None:
        """Return the plan of writing the new state within one call into C; None if that needs Python."""
        if self.local_state:
            return None
        for i in self.written:
            for place in self.slots[i].places:
                drop_own_cell(tensors[place])
        # The usual case, without a Python call per tensor.
        if self.plain:
            return plan_writes([tensors[i] for i in self.written], self.state_layouts)
        plan = Plan()
        for place, i in enumerate(self.written):
            slot = self.slots[i]
            if not slot.plan(plan, [tensors[k] for k in slot.places], place):
                return None
        return plan

    def write(self, tensors: list[Tensor], arrays: Sequence, *also: Iterable) -> None:
        """Write the new state into its tensors; the arrays that they hold live on.

        Args:
            tensors: the state.
            arrays: its new payloads.
            also: iterators that are exhausted when it is written, see `_core.tensor.storage.exchange`.
        """
        if self.local_state:
            arrays = [conversions.to_logical(a, lay) for a, lay in zip(arrays, self._whole, strict=True)]
        if self.plain:
            put_all([tensors[i] for i in self.written], arrays, self.state_layouts, *also)
            return

        def give() -> None:
            for i, array, layout in zip(self.written, arrays, self.state_layouts, strict=True):
                slot = self.slots[i]
                if slot.own:
                    put(tensors[slot.places[0]], array, layout)
                else:
                    slot.give([tensors[place] for place in slot.places], array)

        write_atomically([tensors[place] for i in self.written for place in self.slots[i].places], give, *also)

    def rebuilt(self, arrays, state: State | None = None):
        """Rebuild the function's result from the arrays of its tensors; those stored elsewhere are state."""
        outs = []
        layouts = self.layouts[self._count :]
        # Tensors that a step stores in its modules come last; an exported one has none.
        arrays = arrays[: len(layouts)]
        for i, (array, layout, is_global) in enumerate(zip(arrays, layouts, self.are_global, strict=True)):
            if layout is not None and not is_global:
                array, layout = conversions.to_logical(array, layout), None
            elif i in self.elsewhere:
                array, layout = conversions.convert(array, layout, *_requested_layout(self.elsewhere[i], layout))
            outs.append(wrap_any(array, layout))
        if self.left:
            count = sum(entry.constant is None for entry in self.left)
            outs, stored = outs[: len(outs) - count], iter(outs[len(outs) - count :])
            for entry in self.left:
                entry.store(next(stored) if entry.constant is None else entry.constant)
            if state is not None:
                state.watch()
        return self.results.fill_places(outs)


def _requested_layout(operation: TracedLayout, layout: Layout) -> tuple:
    """Return placement and nd-sbp of a result on another placement than the program's."""
    codes = operation.pinned or layout.codes
    if len(codes) != len(operation.placement.hierarchy) or algebra.FREE in codes:
        codes = (algebra.B,) * len(operation.placement.hierarchy)
    return operation.placement, algebra.to_sbp(codes)


def raise_if_nonfinite(arrays: list) -> None:
    """Check the results of a program: one that has run without `jax.debug_nans` is not checked by JAX.

    Raises:
        FOUND_NAN: one has a bad value.
    """
    check_special("step", arrays)


def nan_error(operation: str, error: Exception) -> NanError:
    """Return the error of a step whose results have a bad value.

    Args:
        operation: the operation that ran.
        error: JAX's.
    """
    return NanError(
        operation,
        f"a value that is no number ({error.args[-1] if error.args else error})",
        "under jax.debug_nans a step ends at the first one; parameters are those of the step before",
        "run this step eagerly under jax.debug_nans: the traceback ends at the op that made it, and a label out of its "
        "range is named; sbpjax.autograd.detect_anomaly() finds the op of a backward",
    )
