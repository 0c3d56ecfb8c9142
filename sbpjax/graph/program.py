"""`Program`: one function of tensors, traced, planned, compiled, and run again and again.

Worked case: ``step(x)`` with a model of 4 parameters and Adam (8 moments, one step count) has the inputs

    seed │ 13 state arrays │ lr, betas, eps │ x │ tensors the function reads from outside

and the outputs *13 written state arrays │ loss*. State that the function only reads is an input and nothing more; what
it writes is donated, so a step needs no second copy of it. An array that something else still holds (``p.jax()``, an
alias, two tensors of one array) is copied first, since a donated array is gone.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from sbpjax import world
from sbpjax.amp.casting import fresh
from sbpjax.amp.widen import widened
from sbpjax.compiler import conversions
from sbpjax.errors import MixedTensorError, SbpjaxError, message
from sbpjax.sbp import Layout, algebra, broadcast, spread
from sbpjax.sbp.abstract import Abstract
from sbpjax.sbp.compile import compile_program
from sbpjax.sbp.cost import DEFAULT, CostModel
from sbpjax.sbp.in_place import in_place, partners
from sbpjax.sbp.normalise import normalise, run_program
from sbpjax.sbp.outline import run_outlined
from sbpjax.sbp.roll import rolled
from sbpjax.tensor import Tensor
from sbpjax.tensor.abstract import check_runnable
from sbpjax.tensor.generator import default_generator
from sbpjax.tensor.op_calls import called, inlined
from sbpjax.tensor.parked import Elsewhere, is_parked
from sbpjax.tensor.storage import drop_own_cell
from sbpjax.tensor.tensor import wrap_any
from sbpjax.tensor.traced import TracedLayout, as_traced, logical

from . import tree
from .agreement import agree, agree_on_numbers
from .auto import Auto, Lent, layouts_of_slots
from .auto import check_arguments as check_local_arguments
from .capture import Lifted, State
from .interrupt import Uninterrupted
from .signature import Call
from .slots import Slot, stackable, stacked_layout
from .watch import Watch
from .zero import Zero, gathered_per_use

_SEED = jax.ShapeDtypeStruct((2,), np.int64)  # seed and counter; every random op in the program folds its number in
_NO_SEED = np.zeros(2, np.int64)


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
        plan: the layouts chosen, None on one device.
        placement: where it runs, None on one device.
        slots: how it takes the state's tensors, one per input.
        written: the numbers of the slots that it writes.
        in_layouts: the layouts of its inputs, None on one device and for numbers.
        out_layouts: the layouts of its outputs.
        released: the numbers of the slots whose layouts the planner chose.
        asked_codes: the nd-sbp of every input before the planner chose, None on one device.
        given: the layouts that the user gave by a file, a `sbpjax.graph.given.Given`.
        seconds: how long each phase took: ``trace``, ``plan``, ``compile``.
    """

    _local_inputs = False  # what it makes is global, and nothing that it is given
    _elsewhere: Mapping[int, TracedLayout] = MappingProxyType({})  # results that lie on another placement
    pipeline: Any = None  # its tasks and schedule, if its state lies on several placements
    scope: Any  # the module calls of a graph's trace, and its arguments without data: what `repr` shows
    arguments: Any
    is_random: bool
    released: Sequence[int] = ()
    _names: tuple[str, ...] = ()  # of the numbers
    _together: Any = None  # what notes its runs, if several processes run it
    asked_codes: tuple | None = None
    given: Any = None
    _arguments: Sequence[int] = ()
    written: list[int]
    _out_tree: Any
    _static_outs: list
    _global_outs: list[bool]

    def __init__(
        self, fn: Callable, state: State, call: Call, options: Options, asked: str, zero: Zero | None = None
    ) -> None:
        self.asked = asked
        self.options = options
        self.seconds: dict[str, float] = {}
        self._compiled: Any = None
        self._no_seed: Any = _NO_SEED
        start = time.perf_counter()
        layouts = state.layouts() + [t._layout for t in call.tensors]
        self.placement = _common_placement(asked, layouts)
        self._numbers = len(state.options)
        self._names = tuple(name for _, name in state.options)
        self._held: list[tuple[float | None, Any]] = [(None, None)] * self._numbers
        self._lifted = Lifted()
        auto = options.auto
        if auto is not None:
            check_local_arguments(asked, self.placement, call.tensors)
        examples = [_example(t) for t in state.tensors] + state.numbers() + [_example(t) for t in call.tensors]
        for turn in range(3):  # what is read from outside is found in one trace, and is an input in the next
            self._lifted.last = turn == 2
            self.jaxpr = self._trace(fn, state, call, [_SEED, *examples])
            if self._lifted.complete:
                break
        rests = {} if zero is None else zero.at_rest(state.tensors)
        self.slots = [_slot((i,), state, rests) for i in range(len(state.tensors))]
        if options.roll:
            self._roll(state, rests)
        if rests and zero is not None and zero.per_use:
            resting = {1 + i: slot.layout for i, slot in enumerate(self.slots) if slot.places[0] in rests}
            self.jaxpr = gathered_per_use(self.jaxpr, resting)
        now = time.perf_counter()
        self.seconds["trace"] = now - start
        rest = call.tensors + self._lifted.tensors
        layouts = [None, *(slot.layout for slot in self.slots), *[None] * self._numbers, *(t._layout for t in rest)]
        self.placement = _common_placement(asked, layouts)
        self._local_inputs = self.placement is None
        if self._local_inputs:
            self.placement = _common_placement(asked, self._asked_outs)
            self._local_inputs = self.placement is not None
        first = 1 + len(self.slots)
        self.released = self._released(state, rests, call)
        self._arguments = self._local_arguments(call, first + self._numbers)
        if auto is not None and auto.given is not None and self.placement is not None:
            self._obey(auto.given, state, call, fn)
        self._plan(layouts)
        self._present = self.placement is None or self.placement.is_present
        self._structs = self._input_structs([state.tensors[slot.places[0]] for slot in self.slots], rest, layouts)
        self._plain = all(slot.own and slot.places == (i,) for i, slot in enumerate(self.slots))
        self._loose = [
            i
            for i, layout in enumerate(layouts)
            if self.placement is not None and i and layout is None and not first <= i < first + self._numbers
        ]
        if auto is not None and call.tensors and all(t._layout is None for t in call.tensors):
            self._global_outs = [False] * len(self._global_outs)
        self.seconds["plan"] = time.perf_counter() - now

    # -- trace -----------------------------------------------------------------------------------------------------

    def _trace(self, fn: Callable, state: State, call: Call, examples: list):
        count = len(state.tensors)
        arguments = count + len(state.options)
        watch = Watch(state.tensors, state.optimizers)
        results: list[Tensor] = []

        def pure(seed, *inputs):
            tensors = [
                _tracer_tensor(t, tracer)
                for t, tracer in zip(call.tensors, inputs[arguments : arguments + len(call.tensors)], strict=True)
            ]
            args, kwargs = call.rebuilt(tensors)
            key = jax.random.fold_in(jax.random.key(seed[0]), seed[1])
            with (
                self.options.auto.tracing() if self.options.auto is not None else contextlib.nullcontext(),
                watch.watching(),
                state.traced(inputs[:arguments]),
                self._lifted.collecting(inputs[arguments + len(call.tensors) :]),
                default_generator.under_trace(key) as stream,
                fresh(),
            ):
                result = fn(*args, **kwargs)
                self.is_random = stream.drawn > 0
                after = [logical(t) for t in state.tensors]
                self.written = [i for i in range(count) if after[i] is not inputs[i]]
                outs, self._out_tree = tree.flatten(result)
                self._static_outs = [None if isinstance(o, Tensor) else (o,) for o in outs]
                found = [o for o in outs if isinstance(o, Tensor)]
                self._global_outs = [o._layout is not None for o in found]
                self._asked_outs = [o._layout for o in found]
                results.extend(found)
                return (*(after[i] for i in self.written), *(logical(o) for o in found))

        extra = [_example(t) for t in self._lifted.tensors]
        try:
            with called():
                closed = jax.make_jaxpr(pure)(*examples, *extra)
        except SbpjaxError as error:
            error.__notes__ = []  # what JAX says about its own frames helps no user
            raise error from None
        watch.check(self.asked, results)
        return widened(inlined(closed))

    def _roll(self, state: State, rests: dict[int, Layout]) -> None:
        """Make loops of repeated layers, and stacks of the state that they own."""
        back = {place: position for position, place in enumerate(self.written)}
        resident = {1 + i: (stackable(t), back.get(i)) for i, t in enumerate(state.tensors)}
        movable = {i: ((*e[0], rests.get(i - 1)), e[1]) for i, e in resident.items() if e[0] is not None}
        found = rolled(self.jaxpr, movable, self.options.roll)
        self.jaxpr = found.closed
        kept = [group for group in found.inputs if 1 <= group[0] <= len(state.tensors)]
        self.slots = [_slot(tuple(i - 1 for i in group), state, rests) for group in kept]
        number = {slot.places[0]: n for n, slot in enumerate(self.slots)}
        self.written = [number[self.written[group[0]]] for group in found.outputs if group[0] < len(self.written)]

    # -- plan and compile ------------------------------------------------------------------------------------------

    def _released(self, state: State, rests: dict[int, Layout], call: Call) -> list[int]:
        """Return the numbers of the slots whose layouts the planner chooses."""
        auto = self.options.auto
        if auto is None or self.placement is None:
            return []
        given = {id(t) for t in call.tensors}  # what is an argument too comes as it lies
        return [
            number
            for number, slot in enumerate(self.slots)
            if not any(id(state.tensors[place]) in given for place in slot.places)
            and all(place not in rests and auto.is_released(state.tensors[place]) for place in slot.places)
        ]

    def _local_arguments(self, call: Call, first: int) -> list[int]:
        """Return the positions of local arguments with dims, which the planner lays out."""
        if self.options.auto is None or self.placement is None:
            return []
        return [first + i for i, t in enumerate(call.tensors) if t._layout is None and t.ndim]

    def _obey(self, sharding: Any, state: State, call: Call, step: Any) -> None:
        """Release what a file lays out otherwise than it lies."""
        from .given import given  # only here: few programs have a file

        self.given = given(sharding, self, state, call, step._graph)
        named = (i - 1 for i in self.given.codes if 1 <= i <= len(self.slots))
        self.released = sorted({*self.released, *named})

    def settle(self, lent: Lent, state: State) -> None:
        """Lay the state out as this program takes it."""
        chosen = {number: self.in_layouts[1 + number] for number in self.released}
        lent.settle(state.tensors, layouts_of_slots(self.slots, chosen))

    def _plan(self, layouts: list) -> None:
        """Plan and lower the program; the chosen layouts of released slots and local arguments go into ``layouts``."""
        closed = self.jaxpr
        donate = tuple(1 + i for i in self.written)
        if self.placement is None:
            self.plan = None
            self.in_layouts = [None] * len(layouts)
            self.out_layouts = [None] * len(closed.out_avals)
            self._call = jax.jit(_outlined(closed, donate), donate_argnums=donate)
        else:
            everywhere = (broadcast,) * len(self.placement.hierarchy)
            whole = [
                Layout(self.placement, everywhere, aval.shape, aval.dtype) if lay is None else lay
                for lay, aval in zip(layouts, closed.in_avals, strict=True)
            ]
            self.asked_codes = tuple(layout.codes for layout in whole)
            laid = {*(1 + number for number in self.released), *self._arguments}
            pinned = {} if self.given is None else {i: c for i, c in self.given.codes.items() if i in laid}
            whole = [lay.with_codes(pinned[i]) if i in pinned else lay for i, lay in enumerate(whole)]
            free = sorted(laid - set(pinned))
            before = [1 + i if i in self.released else self.slots[i].layout for i in self.written]
            pins: list = [everywhere if p is None else p.sbp if isinstance(p, Layout) else p for p in before]
            pins += [None] * (len(closed.out_avals) - len(pins))
            made = compile_program(
                closed if self.given is None else self.given.flat,
                self.placement,
                whole,
                pins,
                donate,
                lowering=self.options.lowering,
                free_inputs=free,
                whole_dims={1 + i: (0,) for i in self.released if 1 + i in free and len(self.slots[i].places) > 1},
                cost=self.options.cost,
                memory_bytes=self.options.memory_bytes,
            )
            self.plan, self.in_layouts, self.out_layouts = made.plan, list(made.in_layouts), list(made.out_layouts)
            self._call = made.call
            for number in self.released:
                self.slots[number].layout = made.in_layouts[1 + number]
            for i in laid:
                layouts[i] = made.in_layouts[i]
        self._state_layouts = self._whole_state = self.out_layouts[: len(self.written)]
        if self._local_inputs:
            self._state_layouts = [None] * len(self.written)
        asked = dict(enumerate(self._asked_outs)) if self.placement is not None else {}
        self._elsewhere = {k: lay for k, lay in asked.items() if lay is not None and lay.placement != self.placement}

    def _input_structs(self, owned: list, rest: list, layouts: list) -> list:
        """Return for every input of the compiled program its physical shape, dtype and sharding."""
        mesh = None if self.placement is None else self.placement.mesh
        replicated = None if mesh is None else jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        avals = self.jaxpr.in_avals
        arrays = [None, *(t._array for t in owned), *[None] * self._numbers, *(t._array for t in rest)]
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
        return self.is_compiled and self._plain and self._present and not (self._loose or self._arguments or spread_out)

    @property
    def one_result(self) -> tuple | None:
        """The layout of the result, in a tuple, if the function returns one tensor as it comes; else None."""
        if self._out_tree is not tree.LEAF or self._static_outs != [None]:
            return None
        layout = self.out_layouts[-1]
        return (layout,) if (layout is None or self._global_outs[0]) and not self._elsewhere else None

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
                spread.come_together(self.asked, self.placement.devices)  # some may have compiled longer
            self.seconds["compile"] = time.perf_counter() - start
            if self._present and not self.is_random:  # on the device once, since a NumPy array goes there every time
                self._no_seed = spread.on(_NO_SEED, self._where(0))
        return self._compiled

    def _where(self, place: int) -> Any:
        """Return where an input that is no tensor goes: with the others, if any of them is bound to a device."""
        bound = (struct.sharding for struct in self._structs if struct.sharding is not None)
        return self._structs[place].sharding or next(bound, None)

    # -- run -------------------------------------------------------------------------------------------------------

    def run(self, state: State, arguments: list):
        """Run the program, write the new state, and return the function's result."""
        tensors = state.tensors
        if self._plain:
            arrays = [t._array for t in tensors]
        else:
            arrays = [
                tensors[slot.places[0]]._array if slot.own else slot.array([tensors[i] for i in slot.places])
                for slot in self.slots
            ]
        if Elsewhere in map(type, arrays):  # parked by another graph, taken whole by this one
            own = tensors if self._plain else [tensors[slot.places[0]] for slot in self.slots]
            arrays = [t._fresh()._array if a.__class__ is Elsewhere else a for t, a in zip(own, arrays, strict=True)]
        given = [t._fresh()._array for t in arguments]
        if Abstract in map(type, arrays) or Abstract in map(type, given) or not self._present:
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
        for i in self.written:
            if sys.getrefcount(arrays[i]) == _UNSHARED:
                continue
            slot = self.slots[i]
            alone = slot.own and drop_own_cell(tensors[slot.places[0]])
            held = _UNSHARED + (not alone)  # a cell holds the array too, and so does the shelf of parked tensors
            if sys.getrefcount(arrays[i]) > held:
                arrays[i] = jax.numpy.copy(arrays[i])
        numbers = self._on_device(numbers)
        inputs = [seed, *arrays, *numbers, *given, *[t._fresh()._array for t in self._lifted.tensors]]
        del arrays
        if self._loose:
            self._replicate(inputs)
        for i in self._arguments:
            inputs[i] = conversions.from_logical(inputs[i], self.placement, self.in_layouts[i].sbp)[0]
        count = len(self.written)
        with Uninterrupted():
            outs = compiled(*inputs)
            self._write(tensors, outs[:count])
        if self.is_random:
            generator._counter += 1
        return self._results(outs[count:])

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

    def _write(self, tensors: list[Tensor], arrays) -> None:
        """Write what the program returned into the handles of the state."""
        if self._local_inputs:
            arrays = [conversions.to_logical(a, lay) for a, lay in zip(arrays, self._whole_state, strict=True)]
        for i, array, layout in zip(self.written, arrays, self._state_layouts, strict=True):
            if self._plain and tensors[i]._cell is None:  # what nearly every tensor of most programs is
                tensor = tensors[i]
                tensor._array = array
                tensor._layout = layout
                tensor._ver += 1
                continue
            slot = self.slots[i]
            tensor = tensors[slot.places[0]]
            if not slot.own:
                slot.give([tensors[place] for place in slot.places], array)
            elif tensor._cell is None:
                tensor._array = array
                tensor._layout = layout
                tensor._ver += 1
            else:
                tensor._set(array, layout)

    def _replicate(self, inputs: list) -> None:
        for i in self._loose:
            if isinstance(inputs[i], jax.Array):
                inputs[i] = spread.on(inputs[i], self._structs[i].sharding)

    def _results(self, arrays):
        layouts = self.out_layouts[len(self.written) :]
        produced = iter(enumerate(zip(arrays, layouts, self._global_outs, strict=True)))
        outs = []
        for static in self._static_outs:
            if static is not None:
                outs.append(static[0])
                continue
            count, (array, layout, is_global) = next(produced)
            if layout is not None and not is_global:
                array, layout = conversions.to_logical(array, layout), None
            elif count in self._elsewhere:
                array, layout = conversions.convert(array, layout, *_where_asked(self._elsewhere[count], layout))
            outs.append(wrap_any(array, layout))
        return tree.unflatten(self._out_tree, outs)


def _outlined(closed, donated: Sequence[int]) -> Callable:
    """Return a program of one device as a function; on CPU its repeated layers are calls of one function."""
    flat = normalise(closed)
    kinds = [[(v.aval.shape, v.aval.dtype) for v in variables] for variables in (flat.invars, flat.outvars)]
    written = in_place(flat, partners(*kinds, donated))
    if jax.default_backend() != "cpu":
        return jaxpr_as_fun(closed) if written is flat else lambda *arrays: run_program(written, arrays)
    return lambda *arrays: run_outlined(written, arrays)


def _slot(places: tuple[int, ...], state: State, rests: dict[int, Layout]) -> Slot:
    own = state.tensors[places[0]]._layout
    layout = rests.get(places[0], own)
    if len(places) == 1:
        return Slot(places, layout, layout is own)
    return Slot(places, stacked_layout(layout, len(places)), False)


def _references(arrays: list, place: int) -> int:
    return sys.getrefcount(arrays[place])


class _Holder:
    def __init__(self) -> None:
        self.array = object()


_HOLDER = _Holder()
_UNSHARED = _references([_HOLDER.array], 0)  # what a payload counts that its tensor and one list hold, and nothing else


def _example(t: Tensor):
    """Return what stands for a tensor in a trace: its logical shape and dtype."""
    layout = t._layout
    if layout is not None:
        return jax.ShapeDtypeStruct(layout.shape, layout.dtype)
    array = t._array if is_parked(t) else t._fresh()._array
    return jax.ShapeDtypeStruct(array.shape, array.dtype, weak_type=getattr(array, "weak_type", False))


def _tracer_tensor(like: Tensor, tracer) -> Tensor:
    tensor = wrap_any(tracer, as_traced(like._layout))
    return tensor.requires_grad_() if like._edge is not None else tensor


def _where_asked(asked: TracedLayout, layout: Layout) -> tuple:
    """Return placement and nd-sbp of a result that lies elsewhere than the program runs."""
    codes = asked.pinned or layout.codes
    if len(codes) != len(asked.placement.hierarchy) or algebra.FREE in codes:
        codes = (algebra.B,) * len(asked.placement.hierarchy)
    return asked.placement, algebra.to_sbp(codes)


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
