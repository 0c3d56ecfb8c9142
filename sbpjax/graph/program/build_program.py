"""Build a `Program` from a function of tensors: trace, passes, plan, lowering.

program = build_program(step, state, call, Options(), "Train_0.build")
program.seconds                             # {"trace": 0.41, "plan": 0.32}
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

from sbpjax._core.compiler.compile import CompiledProgram, compile_program
from sbpjax._core.compiler.in_place import in_place, partners
from sbpjax._core.compiler.options import compiler_options
from sbpjax._core.jax_private import ClosedJaxpr, jaxpr_as_fun
from sbpjax._core.programs.normalise import Program as FlatProgram
from sbpjax._core.programs.normalise import run_program
from sbpjax._core.programs.outline import run_outlined
from sbpjax._core.tensor.storage.payload import payload
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.host_inputs import HostInputs
from sbpjax._core.tracing.kept import Recaptured
from sbpjax._core.tracing.signature import Call
from sbpjax._core.tracing.step import TracedStep
from sbpjax.errors import MixedTensorError
from sbpjax.graph.auto.graph import check_arguments as check_local_arguments
from sbpjax.nn.parameter import Parameter
from sbpjax.sbp import Layout, broadcast
from sbpjax.sbp.placement import placement as Placement

from . import progress
from .outputs import Outputs
from .passes import run_passes
from .program import Options, Program
from .slots import StateSlot
from .user_plan import user_plan_of
from .zero import Zero


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
    layouts = state.layouts() + [t.layout for t in call.tensors]
    auto = options.auto
    place = _common_placement(operation, layouts)
    if auto is not None:
        check_local_arguments(operation, place, call.tensors)
    host_inputs = HostInputs()
    traced = TracedStep(fn, state, call, operation, auto, host_inputs)
    stored = {} if zero is None else zero.stored_layouts(state.tensors)
    per_use = zero is not None and zero.per_use
    jaxpr, flat, slots, written = run_passes(traced, state, stored, options.roll, per_use)
    traced_at = time.perf_counter()
    names = tuple(name for _, name in state.options)
    rest = call.tensors + traced.captured
    # Once more, now with the captured tensors of the trace, and the state as it is stored.
    layouts = [None, *(slot.layout for slot in slots), *[None] * len(names), *(t.layout for t in rest)]
    place = _common_placement(operation, layouts)
    # Its results are global, and none of its inputs is.
    local_inputs = False
    if place is None:
        place = _common_placement(operation, traced.layouts)
        local_inputs = place is not None
    first = 1 + len(slots)
    numbers = range(first, first + len(names))
    free_slots: list[int] = []
    local: list[int] = []
    user_plan = None
    if auto is not None and place is not None:
        free_slots = _free_slots(auto, slots, state, stored, call)
        local = [numbers.stop + i for i, t in enumerate(call.tensors) if t.layout is None and t.ndim]
        if auto.user_plan is not None:
            user_plan = user_plan_of(auto.user_plan, jaxpr, flat, slots, place, state, call, fn._graph)
            # Slots that the file names are laid out anew.
            free_slots = sorted({*free_slots, *(i - 1 for i in user_plan.codes if 1 <= i <= len(slots))})
    donate = tuple(1 + i for i in written)
    requested_codes = plan = None
    if place is None:
        xla_options = compiler_options(None, dict(options.compiler_options))
        run = jax.jit(_outline_program(jaxpr, flat, donate), donate_argnums=donate, compiler_options=xla_options)
        in_layouts: list = [None] * len(layouts)
        out_layouts: list = [None] * len(jaxpr.out_avals)
    else:
        everywhere = (broadcast,) * len(place.hierarchy)
        # A value without a layout is the same on every rank.
        whole = [
            Layout(place, everywhere, aval.shape, aval.dtype) if lay is None else lay
            for lay, aval in zip(layouts, jaxpr.in_avals, strict=True)
        ]
        requested_codes = tuple(layout.codes for layout in whole)
        laid = {*(1 + number for number in free_slots), *local}
        gathers = bool(free_slots) or any(_is_divided_weight(slot, state) for slot in slots)
        with progress.show_activity(operation, "planning"):
            xla_options = compiler_options(place, dict(options.compiler_options), gathers)
            made = _plan_program(
                jaxpr, flat, place, whole, slots, written, free_slots, laid, user_plan, donate, options, xla_options
            )
        run, plan, in_layouts, out_layouts = made.call, made.plan, list(made.in_layouts), list(made.out_layouts)
        for number in free_slots:
            slots[number].layout = in_layouts[1 + number]
        for i in laid:
            layouts[i] = in_layouts[i]
    # A user who gives local tensors to an auto-parallel graph has an ordinary model, and gets local results.
    as_local = auto is not None and call.tensors and all(t.layout is None for t in call.tensors)
    outputs = Outputs(
        slots,
        written,
        out_layouts,
        traced.results,
        [layout is not None and not as_local for layout in traced.layouts],
        {
            i: layout
            for i, layout in enumerate(traced.layouts)
            if place is not None and layout is not None and layout.placement != place
        },
        local_inputs,
        traced.left,
    )
    # Programs are lowered from shapes, so one can be compiled and measured without data, or for a topology without
    # devices.
    owned = [payload(state.tensors[slot.places[0]]) for slot in slots]
    arrays = [None, *owned, *[None] * len(names), *map(payload, rest)]
    structs = _input_structs(jaxpr, place, arrays, layouts)
    # Not the seed (0) and not the numbers: those go to the devices by ways of their own (`Program.run`).
    loose = [i for i, lay in enumerate(layouts) if place is not None and i and lay is None and i not in numbers]
    return Program(
        operation,
        run,
        structs,
        place,
        slots,
        written,
        traced.captured,
        in_layouts,
        out_layouts,
        outputs,
        traced.is_random,
        names,
        loose,
        local,
        jaxpr=jaxpr,
        flat=flat,
        plan=plan,
        options=options,
        free_slots=free_slots,
        requested_codes=requested_codes,
        user_plan=user_plan,
        host_inputs=host_inputs,
        unsettled=traced.text() if traced.stores else None,
        seconds={"trace": traced_at - start, "plan": time.perf_counter() - traced_at},
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
    jaxpr: ClosedJaxpr,
    flat: FlatProgram,
    place: Placement,
    layouts: list[Layout],
    slots: list[StateSlot],
    written: list[int],
    free_slots: list[int],
    laid: set[int],
    user_plan: Any,
    donate: tuple[int, ...],
    options: Options,
    xla_options: dict[str, Any] | None,
) -> CompiledProgram:
    """Plan and lower a program whose inputs ``laid`` have no layout of their own; a user's plan pins some of them."""
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
    mesh = None if place is None else place.mesh
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
    written = in_place(flat, partners(*kinds, donated))
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
