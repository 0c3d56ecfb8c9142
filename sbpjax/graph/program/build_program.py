"""Build a `Program` from a function of tensors: trace, passes, plan, lowering.

program = build_program(step, state, call, Options(), "Train_0.build")
program.seconds                             # {"trace": 0.41, "plan": 0.32}
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from sbpjax._core.compiler.compile import CompiledProgram, compile_program
from sbpjax._core.compiler.in_place import match_donations, write_scans_in_place
from sbpjax._core.compiler.options import compiler_options
from sbpjax._core.jax_private import ClosedJaxpr, jaxpr_as_fun
from sbpjax._core.programs.normalise import Program as FlatProgram
from sbpjax._core.programs.normalise import run_program
from sbpjax._core.programs.outline import run_outlined
from sbpjax._core.programs.plan import Plan
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.runtime.progress import show_phase
from sbpjax._core.tensor.storage.payload import payload, payload_metadata
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.escaped_tensors import Recaptured
from sbpjax._core.tracing.host_inputs import HostInputs
from sbpjax._core.tracing.signature import Call
from sbpjax._core.tracing.step import TracedStep
from sbpjax.errors import MixedTensorError
from sbpjax.graph.auto.graph import check_arguments as check_local_arguments
from sbpjax.nn.parameter import Parameter
from sbpjax.sbp import Layout, broadcast
from sbpjax.sbp.placement import placement as Placement

from .outputs import Outputs
from .passes import TransformedStep, run_passes
from .program import Options, Program
from .slots import StateSlot
from .user_plan import UserPlan, user_plan_of
from .zero import Zero


class _Step(NamedTuple):
    """A traced step: its program after the passes, and the state that is stored divided (position → layout)."""

    traced: TracedStep
    program: TransformedStep
    stored: Mapping[int, Layout]
    host_inputs: HostInputs


class _Inputs(NamedTuple):
    """Where the inputs of a step's program are: the seed, slots of the state, numbers, arguments, captured tensors.

    Attributes:
        place: the placement of the program, None on one device.
        layouts: the layout of every input, None where it has none.
        numbers: the positions of the numbers.
        free_slots: the numbers of the slots whose layouts the planner chooses.
        local: the positions of local arguments, whose layouts the planner chooses.
        user_plan: the layouts that a file of the user's pins.
        only_results: whether results are on the placement, and no input is.
    """

    place: Placement | None
    layouts: list[Layout | None]
    numbers: range
    free_slots: list[int]
    local: list[int]
    user_plan: UserPlan | None
    only_results: bool


class _Planned(NamedTuple):
    """A program that can be called, with the layouts of its inputs and outputs."""

    call: Callable
    plan: Plan | None
    in_layouts: list[Layout | None]
    out_layouts: list[Layout | None]
    requested_codes: tuple | None


def build_program(
    fn: Callable, state: State, call: Call, options: Options, operation: str, zero: Zero | None = None
) -> Program:
    """Trace, plan and lower a function of tensors.

    Args:
        fn: the function.
        state: the tensors that it may change.
        call: the arguments to trace with; only their facts count.
        options: how to compile.
        operation: the user's request, for messages.
        zero: the state that is stored divided over the data-parallel ranks.

    Raises:
        MixedTensorError: its inputs are on several placements.
    """
    start = time.perf_counter()
    step = _trace(fn, state, call, options, operation, zero)
    traced_at = time.perf_counter()
    inputs = _place(step, state, call, options, operation, fn)
    planned = _plan(step, inputs, state, options, operation)
    program = _wrap(step, inputs, planned, state, call, options, operation)
    program.seconds = {"trace": traced_at - start, "plan": time.perf_counter() - traced_at}
    return program


def _trace(fn: Callable, state: State, call: Call, options: Options, operation: str, zero: Zero | None) -> _Step:
    """Trace the function and run the passes; its given inputs must be on one placement."""
    place = _common_placement(operation, state.layouts() + [t.layout for t in call.tensors])
    if options.auto is not None:
        check_local_arguments(operation, place, call.tensors)
    host_inputs = HostInputs()
    with show_phase(operation, "tracing"):
        traced = TracedStep(fn, state, call, operation, options.auto, host_inputs)
    stored = {} if zero is None else zero.stored_layouts(state.tensors)
    per_use = zero is not None and zero.per_use
    return _Step(traced, run_passes(traced, state, stored, options.roll, per_use), stored, host_inputs)


def _place(step: _Step, state: State, call: Call, options: Options, operation: str, fn: Any) -> _Inputs:
    """Find the placement of the program, the layouts of its inputs, and the inputs that the planner lays out."""
    traced, (jaxpr, flat, slots, _) = step.traced, step.program
    first = 1 + len(slots)
    numbers = range(first, first + len(state.options))
    # Now with the captured tensors of the trace, and the state as it is stored.
    rest = [t.layout for t in call.tensors + traced.captured]
    layouts = [None, *(slot.layout for slot in slots), *[None] * len(numbers), *rest]
    place = _common_placement(operation, layouts)
    only_results = False
    if place is None:
        place = _common_placement(operation, traced.layouts)
        only_results = place is not None
    auto = options.auto
    if auto is None or place is None:
        return _Inputs(place, layouts, numbers, [], [], None, only_results)
    free_slots = _free_slots(auto, slots, state, step.stored, call)
    local = [numbers.stop + i for i, t in enumerate(call.tensors) if t.layout is None and t.ndim]
    user_plan = None
    if auto.user_plan is not None:
        user_plan = user_plan_of(auto.user_plan, jaxpr, flat, slots, place, state, call, fn._graph)
        # Slots that the file names are laid out anew.
        free_slots = sorted({*free_slots, *(i - 1 for i in user_plan.codes if 1 <= i <= len(slots))})
    return _Inputs(place, layouts, numbers, free_slots, local, user_plan, only_results)


def _plan(step: _Step, inputs: _Inputs, state: State, options: Options, operation: str) -> _Planned:
    """Plan and lower the program; slots and inputs that the planner laid out get their layouts."""
    jaxpr, flat, slots, written = step.program
    place, layouts = inputs.place, inputs.layouts
    donate = tuple(1 + i for i in written)
    if place is None:
        xla_options = compiler_options(None, dict(options.compiler_options))
        run = jit_without_mesh(
            _outline_program(jaxpr, flat, donate), donate_argnums=donate, compiler_options=xla_options
        )
        return _Planned(run, None, [None] * len(layouts), [None] * len(jaxpr.out_avals), None)
    everywhere = (broadcast,) * len(place.hierarchy)
    # A value without a layout is the same on every rank.
    whole = [
        Layout(place, everywhere, aval.shape, aval.dtype) if lay is None else lay
        for lay, aval in zip(layouts, jaxpr.in_avals, strict=True)
    ]
    laid = {*(1 + number for number in inputs.free_slots), *inputs.local}
    gathers = bool(inputs.free_slots) or any(_is_divided_weight(slot, state) for slot in slots)
    with show_phase(operation, "planning"):
        xla_options = compiler_options(place, dict(options.compiler_options), gathers)
        made = _plan_program(step.program, inputs, place, whole, laid, donate, options, xla_options)
    for number in inputs.free_slots:
        slots[number].layout = made.in_layouts[1 + number]
    for i in laid:
        layouts[i] = made.in_layouts[i]
    requested_codes = tuple(layout.codes for layout in whole)
    return _Planned(made.call, made.plan, list(made.in_layouts), list(made.out_layouts), requested_codes)


def _wrap(
    step: _Step, inputs: _Inputs, planned: _Planned, state: State, call: Call, options: Options, operation: str
) -> Program:
    """Return the `Program` of a planned step, with the shapes of its inputs and the places of its outputs."""
    traced, (jaxpr, flat, slots, written) = step.traced, step.program
    place, layouts, numbers = inputs.place, inputs.layouts, inputs.numbers
    # A user who gives local tensors to an auto-parallel graph has an ordinary model, and gets local results.
    as_local = options.auto is not None and call.tensors and all(t.layout is None for t in call.tensors)
    outputs = Outputs(
        slots,
        written,
        planned.out_layouts,
        traced.results,
        [layout is not None and not as_local for layout in traced.layouts],
        {
            i: layout
            for i, layout in enumerate(traced.layouts)
            if place is not None and layout is not None and layout.placement != place
        },
        inputs.only_results,
        traced.left,
    )
    # Programs are lowered from shapes, so one can be compiled and measured without data, or for a topology without
    # devices.
    owned = [payload_metadata(state.tensors[slot.places[0]]) for slot in slots]
    arrays = [None, *owned, *[None] * len(numbers), *map(payload, call.tensors + traced.captured)]
    # Not the seed (0) and not the numbers: those go to the devices by ways of their own (`Program.run`).
    loose = [i for i, lay in enumerate(layouts) if place is not None and i and lay is None and i not in numbers]
    return Program(
        operation,
        planned.call,
        _input_structs(jaxpr, place, arrays, layouts),
        place,
        slots,
        written,
        traced.captured,
        planned.in_layouts,
        planned.out_layouts,
        outputs,
        traced.is_random,
        tuple(name for _, name in state.options),
        loose,
        inputs.local,
        jaxpr=jaxpr,
        flat=flat,
        plan=planned.plan,
        options=options,
        free_slots=inputs.free_slots,
        requested_codes=planned.requested_codes,
        user_plan=inputs.user_plan,
        host_inputs=step.host_inputs,
        unsettled=traced.text() if traced.stores else None,
    )


def check_repeats(program: Any, fn: Callable, state: State, call: Call) -> None:
    """Check that a program that stores tensors is the same once its function may find them.

    Raises:
        Recaptured: it is not; the stored tensors are state from here on.
    """
    if program.options.auto is None:
        traced = TracedStep(fn, state, call, program.operation, None, HostInputs())
        same = traced.text() == program.unsettled
        traced.undo(state)
        if not same:
            for output in program.outputs.left:
                output.forget()
            raise Recaptured
    program.unsettled = None


def _free_slots(auto, slots: list[StateSlot], state: State, stored: dict[int, Layout], call: Call) -> list[int]:
    """Return the numbers of the slots whose layouts the planner chooses."""
    arguments = {id(t) for t in call.tensors}  # a tensor that is an argument too comes in its own layout
    return [
        number
        for number, slot in enumerate(slots)
        if not any(id(state.tensors[place]) in arguments for place in slot.places)
        and all(place not in stored and auto.is_free(state.tensors[place]) for place in slot.places)
    ]


def _is_divided_weight(slot: StateSlot, state: State) -> bool:
    if slot.layout is None or not isinstance(state.tensors[slot.places[0]], Parameter):
        return False
    return any(code >= 0 and n > 1 for code, n in zip(slot.layout.codes, slot.layout.placement.hierarchy, strict=True))


def _plan_program(
    program: TransformedStep,
    inputs: _Inputs,
    place: Placement,
    layouts: list[Layout],
    laid: set[int],
    donate: tuple[int, ...],
    options: Options,
    xla_options: dict[str, Any] | None,
) -> CompiledProgram:
    """Plan and lower a program whose inputs ``laid`` have no layout of their own; a user's plan pins some of them."""
    jaxpr, flat, slots, written = program
    free_slots, user_plan = inputs.free_slots, inputs.user_plan
    everywhere = (broadcast,) * len(place.hierarchy)
    pinned = {} if user_plan is None else {i: c for i, c in user_plan.codes.items() if i in laid}
    layouts = [lay.with_codes(pinned[i]) if i in pinned else lay for i, lay in enumerate(layouts)]
    free = sorted(laid - set(pinned))
    # State is returned in its input layout (a free slot in the planner's): else the plan would fit the first step only.
    before = [1 + i if i in free_slots else slots[i].layout for i in written]
    pins: list = [everywhere if p is None else p.sbp if isinstance(p, Layout) else p for p in before]
    pins += [None] * (len(jaxpr.out_avals) - len(pins))
    return compile_program(
        flat if user_plan is None else user_plan.flat,
        place,
        layouts,
        pins,
        donate,
        lowering=options.lowering,
        free_inputs=free,
        whole_dims={1 + i: (0,) for i in free_slots if 1 + i in free and len(slots[i].places) > 1},
        cost=options.cost,
        memory_bytes=options.memory_bytes,
        compiler_options=xla_options,
    )


def _input_structs(jaxpr: ClosedJaxpr, place: Placement | None, arrays: list, layouts: list) -> list:
    """Return for every input of the compiled program its physical shape, dtype and sharding."""
    mesh = None if place is None else place.auto_mesh
    replicated = None if mesh is None else jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    structs = []
    for array, layout, aval in zip(arrays, layouts, jaxpr.in_avals, strict=True):
        if layout is not None:
            structs.append(jax.ShapeDtypeStruct(layout.physical_shape, layout.dtype, sharding=layout.sharding))
            continue
        where = replicated
        if where is None and getattr(array, "committed", False):
            where = array.sharding
        structs.append(jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=where))
    return structs


def _outline_program(closed, flat: FlatProgram, donated: Sequence[int]) -> Callable:
    """Return a program of one device as a function; on CPU its repeated layers are calls of one function."""
    sides: list[Any] = [flat.invars, flat.outvars]
    kinds = [[(v.aval.shape, v.aval.dtype) for v in variables] for variables in sides]
    written = write_scans_in_place(flat, match_donations(*kinds, donated))
    # Compilers for accelerators fuse by their own cost models; calls would be in their way
    # (`_core/programs/outline.py`).
    if jax.default_backend() != "cpu":
        return jaxpr_as_fun(closed) if written is flat else lambda *arrays: run_program(written, arrays)
    return lambda *arrays: run_outlined(written, arrays)


def _common_placement(operation: str, layouts):
    placements = list(dict.fromkeys(lay.placement for lay in layouts if lay is not None))
    if len(placements) > 1:
        raise MixedTensorError(
            operation,
            f"tensors on {placements[0]!r} and on {placements[1]!r}",
            "one compiled program runs on one placement",
            f"move the inputs and the state to one: x.to_global({placements[0]!r}, sbp=...)",
        )
    return placements[0] if placements else None
