"""The passes over a traced step, in order, from the trace to the plan.

    inline          the bodies of op calls replace the calls: nothing after the trace sees a difference
    widen           gradients of cast weights are summed in float32; the cast and the sum are still in one program
    fuse losses     a linear layer and the cross entropy of its many logits are one equation, which never has them all
    roll            layers that repeat become loops over stacks of their state
    gather per use  parameters that are stored divided are gathered by each reader, which may be a loop by now
    store narrow    on accelerators values of 16 bits are stored as such, with any fusion of XLA's
    sum widely      on the CPU sums of 16-bit floats are float32 until they are whole
    flatten         calls are gone, and only equations that a result needs are left; done once

Later steps, in the compilation of the program: the pins of a user's plan, the plan, and updates in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sbpjax._core.jax_private import ClosedJaxpr
from sbpjax._core.programs.bf16_barriers import add_bf16_barriers
from sbpjax._core.programs.fp32_gradients import widen_gradients
from sbpjax._core.programs.fp32_sums import with_wide_sums
from sbpjax._core.programs.fused_losses import fuse_linear_losses
from sbpjax._core.programs.normalise import Program as FlatProgram
from sbpjax._core.programs.normalise import normalise
from sbpjax._core.programs.scan_layers import roll_layers
from sbpjax._core.tensor.dispatch.op_calls import inline_calls
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.step import TracedStep
from sbpjax.sbp import Layout

from ..repeated_layers import device_type
from .slots import StateSlot, slot_of, stackable
from .zero import gather_per_use


class TransformedStep(NamedTuple):
    """A traced step after the passes.

    Attributes:
        jaxpr: the program in the logical view.
        flat: the same, flat.
        slots: its inputs that are tensors of the state.
        written: the numbers of the slots that it writes, its first outputs.
    """

    jaxpr: ClosedJaxpr
    flat: FlatProgram
    slots: list[StateSlot]
    written: list[int]


def run_passes(
    traced: TracedStep, state: State, stored: Mapping[int, Layout], least_repeats: int = 0, per_use: bool = False
) -> TransformedStep:
    """Run the passes.

    Args:
        traced: the traced step.
        state: the state that it was traced with.
        stored: position in the state → the layout in which a tensor that is divided is stored between steps.
        least_repeats: roll layers that repeat at least so often; 0 for none.
        per_use: gather divided parameters at every use.
    """
    # Inlined before it is widened: a cast and the sum that it widens are in two calls.
    # Losses after it: the sum that it widens is a product with the gradient of the logits.
    closed = fuse_linear_losses(widen_gradients(inline_calls(traced.closed)))
    slots = [slot_of((i,), state.tensors, stored) for i in range(len(state.tensors))]
    written = traced.written
    if least_repeats:
        closed, slots, written = _roll_layers(closed, state, stored, written, least_repeats)
    if stored and per_use:
        closed = gather_per_use(closed, {1 + i: s.layout for i, s in enumerate(slots) if s.places[0] in stored})
    kind = device_type(state.tensors)
    if kind == "cpu":
        closed = with_wide_sums(closed)
    else:
        sizes = [t.layout.placement.size for t in state.tensors if t.layout is not None]
        closed = add_bf16_barriers(closed, convolutions=kind == "cuda" and max(sizes, default=1) == 1)
    return TransformedStep(closed, normalise(closed), slots, written)


def _roll_layers(
    closed: ClosedJaxpr, state: State, stored: Mapping[int, Layout], written: list[int], least_repeats: int
) -> tuple[ClosedJaxpr, list[StateSlot], list[int]]:
    """Make loops of repeated layers, and stacks of the state that they own."""
    back = {place: position for position, place in enumerate(written)}
    resident = {1 + i: (stackable(t), back.get(i)) for i, t in enumerate(state.tensors)}
    movable = {i: ((*e[0], stored.get(i - 1)), e[1]) for i, e in resident.items() if e[0] is not None}
    found = roll_layers(closed, movable, least_repeats)
    kept = [group for group in found.inputs if 1 <= group[0] <= len(state.tensors)]
    slots = [slot_of(tuple(i - 1 for i in group), state.tensors, stored) for group in kept]
    number = {slot.places[0]: n for n, slot in enumerate(slots)}
    returned = [number[written[group[0]]] for group in found.outputs if group[0] < len(written)]
    return found.closed, slots, returned
