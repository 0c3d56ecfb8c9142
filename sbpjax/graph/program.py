"""`Program`: one function of tensors, traced, planned, compiled, and run again and again.

Worked case: ``step(x)`` with a model of 4 parameters and Adam (8 moments, one step count) has the inputs

    seed │ 13 state arrays │ lr, betas, eps │ x │ tensors the function reads from outside

and the outputs *13 written state arrays │ loss*. State that the function only reads is an input and nothing more; what
it writes is donated, so a step needs no second copy of it. An array that something else still holds (``p.jax()``, an
alias, two tensors of one array) is copied first, since a donated array is gone.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sbpjax.compiler import conversions
from sbpjax.compiler.compile import compile_program
from sbpjax.compiler.in_place import in_place, partners
from sbpjax.errors import MixedTensorError, message
from sbpjax.graph.auto.graph import Auto, StandIns, layouts_of_slots
from sbpjax.graph.auto.graph import check_arguments as check_local_arguments
from sbpjax.planner.prices.cost import DEFAULT, CostModel
from sbpjax.programs.normalise import Program as FlatProgram
from sbpjax.programs.normalise import run_program
from sbpjax.programs.outline import run_outlined
from sbpjax.sbp import Layout, broadcast, spread
from sbpjax.sbp.abstract import Abstract
from sbpjax.tensor.abstract import check_runnable
from sbpjax.tensor.generator import default_generator
from sbpjax.tensor.payload import payload, payloads
from sbpjax.tensor.storage import drop_own_cell
from sbpjax.tracing.capture import State
from sbpjax.tracing.signature import Call
from sbpjax.tracing.step import TracedStep
from sbpjax.world import processes as world
from sbpjax.world.jaxprs import jaxpr_as_fun

from .agreement import agree, agree_on_numbers
from .interrupt import Uninterrupted
from .outputs import Outputs
from .passes import passed
from .zero import Zero

NO_SEED = np.zeros(2, np.int64)


@dataclass(frozen=True)
class Options:
    """How a program is compiled; part of its key.

    Attributes:
        lowering: ``"spmd"`` (explicit collectives) or ``"gspmd"`` (sharding constraints, collectives left to XLA).
        roll: run layers that repeat at least so often as loops over stacks of their state; 0 for never.
        cost: the prices by which the planner chooses.
        memory_bytes: what one device may hold at most; None for no limit.
        auto: which of the state the planner lays out; None for what the planner does without auto parallelism.
    """

    lowering: str = "spmd"
    roll: int = 0
    cost: CostModel = DEFAULT
    memory_bytes: float | None = None
    auto: Auto | None = None


class Program:
    """One traced, planned and compiled program.

    Args:
        fn: the function.
        state: what it may change.
        call: the arguments to trace with; only their facts count.
        options: how to compile.
        asked: what the user asked for, for messages.
        zero: which of the state rests divided over the data-parallel ranks.

    Attributes:
        jaxpr: what was traced, in the logical view.
        flat: the same, flat: what is planned.
        plan: the layouts chosen, None on one device.
        placement: where it runs, None on one device.
        slots: how it takes the state's tensors, one per input.
        written: the numbers of the slots that it writes.
        in_layouts: the layouts of its inputs, None on one device and for numbers.
        out_layouts: the layouts of its outputs.
        outputs: what puts the outputs where they belong.
        captured: the tensors that the function reads without being given them.
        free_slots: the numbers of the slots whose layouts the planner chose.
        asked_codes: the nd-sbp of every input before the planner chose, None on one device.
        user_plan: the layouts that a file of the user's pins, a `sbpjax.graph.user_plan.UserPlan`.
        seconds: how long each phase took: ``trace``, ``plan``, ``compile``.
    """

    _local_inputs = False  # what it makes is global, and nothing that it is given
    pipeline: Any = None  # its tasks and schedule, if its state lies on several placements
    scope: Any  # the module calls of a graph's trace, and its arguments without data: what `repr` shows
    arguments: Any
    is_random: bool
    free_slots: Sequence[int] = ()
    _names: tuple[str, ...] = ()  # of the numbers
    _together: Any = None  # what notes its runs, if several processes run it
    asked_codes: tuple | None = None
    user_plan: Any = None
    _arguments: Sequence[int] = ()
    written: list[int]
    outputs: Outputs

    def __init__(
        self, fn: Callable, state: State, call: Call, options: Options, asked: str, zero: Zero | None = None
    ) -> None:
        self.asked = asked
        self.options = options
        self.seconds: dict[str, float] = {}
        self._compiled: Any = None
        self._no_seed: Any = NO_SEED
        start = time.perf_counter()
        layouts = state.layouts() + [t.layout for t in call.tensors]
        self.placement = _common_placement(asked, layouts)
        self._numbers = len(state.options)
        self._names = tuple(name for _, name in state.options)
        self._held: list[tuple[float | None, Any]] = [(None, None)] * self._numbers
        auto = options.auto
        if auto is not None:
            check_local_arguments(asked, self.placement, call.tensors)
        traced = TracedStep(fn, state, call, asked, auto)
        self.captured, self.is_random = traced.captured, traced.is_random
        stored = {} if zero is None else zero.stored(state.tensors)
        per_use = zero is not None and zero.per_use
        self.jaxpr, self.flat, self.slots, self.written = passed(traced, state, stored, options.roll, per_use)
        now = time.perf_counter()
        self.seconds["trace"] = now - start
        rest = call.tensors + self.captured
        layouts = [None, *(slot.layout for slot in self.slots), *[None] * self._numbers, *(t.layout for t in rest)]
        self.placement = _common_placement(asked, layouts)
        self._local_inputs = self.placement is None
        if self._local_inputs:
            self.placement = _common_placement(asked, traced.layouts)
            self._local_inputs = self.placement is not None
        first = 1 + len(self.slots)
        self.free_slots = self._free_slots(state, stored, call)
        self._arguments = self._local_arguments(call, first + self._numbers)
        if auto is not None and auto.user_plan is not None and self.placement is not None:
            self._pin_user_plan(auto.user_plan, state, call, fn)
        self._plan(layouts)
        self._present = self.placement is None or self.placement.is_present
        # Programs are lowered from shapes, so one can be compiled and measured without data, or for devices that are
        # not there.
        self._structs = self._input_structs([state.tensors[slot.places[0]] for slot in self.slots], rest, layouts)
        self._loose = [
            i
            for i, layout in enumerate(layouts)
            if self.placement is not None and i and layout is None and not first <= i < first + self._numbers
        ]
        as_local = auto is not None and call.tensors and all(t.layout is None for t in call.tensors)
        self.outputs = Outputs(
            self.slots,
            self.written,
            self.out_layouts,
            traced.results,
            [layout is not None and not as_local for layout in traced.layouts],
            {
                i: layout
                for i, layout in enumerate(traced.layouts)
                if self.placement is not None and layout is not None and layout.placement != self.placement
            },
            self._local_inputs,
        )
        self.seconds["plan"] = time.perf_counter() - now

    # -- plan and compile ------------------------------------------------------------------------------------------

    def _free_slots(self, state: State, stored: dict[int, Layout], call: Call) -> list[int]:
        """Return the numbers of the slots whose layouts the planner chooses."""
        auto = self.options.auto
        if auto is None or self.placement is None:
            return []
        arguments = {id(t) for t in call.tensors}  # what is an argument too comes as it lies
        return [
            number
            for number, slot in enumerate(self.slots)
            if not any(id(state.tensors[place]) in arguments for place in slot.places)
            and all(place not in stored and auto.is_free(state.tensors[place]) for place in slot.places)
        ]

    def _local_arguments(self, call: Call, first: int) -> list[int]:
        """Return the positions of local arguments with dims, which the planner lays out."""
        if self.options.auto is None or self.placement is None:
            return []
        return [first + i for i, t in enumerate(call.tensors) if t.layout is None and t.ndim]

    def _pin_user_plan(self, sharding: Any, state: State, call: Call, step: Any) -> None:
        """Pin what a file lays out; slots that it names are laid out anew."""
        from .user_plan import user_plan_of  # only here: few programs have a file

        self.user_plan = user_plan_of(sharding, self, state, call, step._graph)
        named = (i - 1 for i in self.user_plan.codes if 1 <= i <= len(self.slots))
        self.free_slots = sorted({*self.free_slots, *named})

    def lay_out(self, stand_ins: StandIns, state: State) -> None:
        """Lay the state out as this program takes it."""
        chosen = {number: self.in_layouts[1 + number] for number in self.free_slots}
        stand_ins.lay_out(state.tensors, layouts_of_slots(self.slots, chosen))

    def _plan(self, layouts: list) -> None:
        """Plan and lower the program; the chosen layouts of free slots and local arguments go into ``layouts``."""
        closed = self.jaxpr
        donate = tuple(1 + i for i in self.written)
        if self.placement is None:
            self.plan = None
            self.in_layouts = [None] * len(layouts)
            self.out_layouts = [None] * len(closed.out_avals)
            self._call = jax.jit(_outlined(closed, self.flat, donate), donate_argnums=donate)
        else:
            everywhere = (broadcast,) * len(self.placement.hierarchy)
            whole = [
                Layout(self.placement, everywhere, aval.shape, aval.dtype) if lay is None else lay
                for lay, aval in zip(layouts, closed.in_avals, strict=True)
            ]
            self.asked_codes = tuple(layout.codes for layout in whole)
            laid = {*(1 + number for number in self.free_slots), *self._arguments}
            pinned = {} if self.user_plan is None else {i: c for i, c in self.user_plan.codes.items() if i in laid}
            whole = [lay.with_codes(pinned[i]) if i in pinned else lay for i, lay in enumerate(whole)]
            free = sorted(laid - set(pinned))
            # State comes back as it went in (a free slot as the planner chose it): else the plan would fit the first
            # step only.
            before = [1 + i if i in self.free_slots else self.slots[i].layout for i in self.written]
            pins: list = [everywhere if p is None else p.sbp if isinstance(p, Layout) else p for p in before]
            pins += [None] * (len(closed.out_avals) - len(pins))
            made = compile_program(
                self.flat if self.user_plan is None else self.user_plan.flat,
                self.placement,
                whole,
                pins,
                donate,
                lowering=self.options.lowering,
                free_inputs=free,
                whole_dims={1 + i: (0,) for i in self.free_slots if 1 + i in free and len(self.slots[i].places) > 1},
                cost=self.options.cost,
                memory_bytes=self.options.memory_bytes,
            )
            self.plan, self.in_layouts, self.out_layouts = made.plan, list(made.in_layouts), list(made.out_layouts)
            self._call = made.call
            for number in self.free_slots:
                self.slots[number].layout = made.in_layouts[1 + number]
            for i in laid:
                layouts[i] = made.in_layouts[i]

    def _input_structs(self, owned: list, rest: list, layouts: list) -> list:
        """Return for every input of the compiled program its physical shape, dtype and sharding."""
        mesh = None if self.placement is None else self.placement.mesh
        replicated = None if mesh is None else jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        avals = self.jaxpr.in_avals
        arrays = [None, *(payload(t) for t in owned), *[None] * self._numbers, *(payload(t) for t in rest)]
        structs = []
        for array, layout, aval in zip(arrays, layouts, avals, strict=True):
            if layout is not None:
                structs.append(jax.ShapeDtypeStruct(layout.physical_shape, layout.dtype, sharding=layout.sharding))
                continue
            where = replicated
            if where is None and getattr(array, "committed", False):
                where = array.sharding
            structs.append(jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=where))
        return structs

    @property
    def is_compiled(self) -> bool:
        """Whether `compile` ran."""
        return self._compiled is not None

    @property
    def is_simple(self) -> bool:
        """Whether it is compiled and takes its state and arguments as they are, in one process."""
        spread_out = self.placement is not None and self.placement.spans_processes
        plain = self.outputs.plain and not (self._loose or self._arguments)
        return self.is_compiled and plain and self._present and not spread_out

    def lower(self):
        """Return the lowered program; nothing is compiled."""
        return self._call.lower(*self._structs)

    def compile(self, to_run: bool = False):
        """Return the compiled program (`jax.stages.Compiled`); the first call compiles it.

        Args:
            to_run: it is about to run: if it is a program of several ranks, they compare it first.
        """
        if self._compiled is None:
            start = time.perf_counter()
            lowered = self.lower()
            spans = self.placement is not None and self.placement.spans_processes
            text = lowered.as_text() if self.placement is not None and world.current().size > 1 else ""
            if to_run and text:
                inputs = [f"{s.dtype}{list(s.shape)} as {getattr(s.sharding, 'spec', None)}" for s in self._structs]
                agree(self.asked, inputs, text)
            if spans:
                name = re.sub(r"_\d+\b", "", self.asked.split("\n")[0])
                devices = self.placement.devices
                self._together = spread.together(devices, name, text, numbered=True, names=self._names)
            self._compiled = lowered.compile()
            if to_run and spans:
                spread.rendezvous(self.asked, self.placement.devices)  # some may have compiled longer
            self.seconds["compile"] = time.perf_counter() - start
            if self._present and not self.is_random:  # on the device once, since a NumPy array goes there every time
                self._no_seed = spread.on(NO_SEED, self._where(0))
        return self._compiled

    def _where(self, place: int) -> Any:
        """Return where an input that is no tensor goes: with the others, if any of them is bound to a device."""
        bound = (struct.sharding for struct in self._structs if struct.sharding is not None)
        return self._structs[place].sharding or next(bound, None)

    # -- run -------------------------------------------------------------------------------------------------------

    def run(self, state: State, arguments: list):
        """Run the program, write the new state, and return the function's result."""
        tensors = state.tensors
        if self.outputs.plain:
            arrays = payloads(tensors)
        else:
            arrays = [slot.array([tensors[i] for i in slot.places]) for slot in self.slots]
        passed_in = payloads(arguments)
        if Abstract in map(type, arrays) or Abstract in map(type, passed_in) or not self._present:
            check_runnable(self.asked, self.placement, (*tensors, *arguments))
        compiled = self._compiled or self.compile(to_run=True)
        numbers = state.numbers()
        if numbers and self._held[0] == (None, None) and self.placement is not None and world.current().size > 1:
            agree_on_numbers(self.asked, state, numbers)
        if self._together is not None:
            self._together.note(tuple(numbers))
        generator = default_generator
        seed = np.array((generator._seed, generator._counter), np.int64) if self.is_random else self._no_seed
        if self.is_random and self.placement is not None and self.placement.spans_processes:
            seed = spread.from_first(seed, self.placement)
        # The call takes the memory of what is donated: an array that the user holds too would be lost to him, so it
        # is copied. Only the reference count tells; a payload that nothing else holds has `UNSHARED`.
        for i in self.written:
            if sys.getrefcount(arrays[i]) == UNSHARED:
                continue
            slot = self.slots[i]
            alone = slot.own and drop_own_cell(tensors[slot.places[0]])
            held = UNSHARED + (not alone)  # a cell holds the array too, and so does the stack of stored tensors
            if sys.getrefcount(arrays[i]) > held:
                arrays[i] = jax.numpy.copy(arrays[i])
        numbers = self._on_device(numbers)
        inputs = [seed, *arrays, *numbers, *passed_in, *payloads(self.captured)]
        del arrays
        if self._loose:
            self._replicate(inputs)
        for i in self._arguments:
            inputs[i] = conversions.from_logical(inputs[i], self.placement, self.in_layouts[i].sbp)[0]
        count = len(self.written)
        with Uninterrupted():
            outs = compiled(*inputs)
            self.outputs.write(tensors, outs[:count])
        if self.is_random:
            # Random ops fold their numbers into the key of the call, so a call counts once, however many draw.
            generator._counter += 1
        return self.outputs.rebuilt(outs[count:])

    def _on_device(self, numbers: list[float]) -> list:
        """Return the numbers, those that stay as they were on the device: a number goes there in every call."""
        found: list = []
        for i, number in enumerate(numbers):
            value, array = self._held[i]
            if number != value:
                self._held[i] = number, None
            elif array is None:
                place = 1 + len(self.slots) + i
                array = spread.on(np.asarray(number, self._structs[place].dtype), self._where(place))
                self._held[i] = number, array
            found.append(number if array is None or number != value else array)
        return found

    def _replicate(self, inputs: list) -> None:
        for i in self._loose:
            if isinstance(inputs[i], jax.Array):
                inputs[i] = spread.on(inputs[i], self._structs[i].sharding)


def _outlined(closed, flat: FlatProgram, donated: Sequence[int]) -> Callable:
    """Return a program of one device as a function; on CPU its repeated layers are calls of one function."""
    kinds = [[(v.aval.shape, v.aval.dtype) for v in variables] for variables in (flat.invars, flat.outvars)]
    written = in_place(flat, partners(*kinds, donated))
    if jax.default_backend() != "cpu":
        return jaxpr_as_fun(closed) if written is flat else lambda *arrays: run_program(written, arrays)
    return lambda *arrays: run_outlined(written, arrays)


def _references(arrays: list, place: int) -> int:
    return sys.getrefcount(arrays[place])


class _Holder:
    def __init__(self) -> None:
        self.array = object()


_HOLDER = _Holder()
UNSHARED = _references([_HOLDER.array], 0)  # what a payload counts that its tensor and one list hold, and nothing else


def _common_placement(asked: str, layouts):
    placements = list(dict.fromkeys(lay.placement for lay in layouts if lay is not None))
    if len(placements) > 1:
        raise MixedTensorError(
            message(
                asked,
                f"tensors on {placements[0]!r} and on {placements[1]!r}",
                "one compiled program runs on one placement",
                f"move the inputs and the state to one: x.to_global({placements[0]!r}, sbp=...)",
            )
        )
    return placements[0] if placements else None
