"""`Program`: one function of tensors, traced, planned and compiled once, and run repeatedly.

Worked case: ``step(x)`` with a model of 4 parameters and Adam (8 moments, one step count) has the inputs

    seed │ 13 state arrays │ lr, betas, eps │ x │ tensors the function reads from outside

and the outputs *13 written state arrays │ loss*. State that the function only reads is an input and nothing more;
written state is donated, so a step needs no second copy of it. An array that something else still holds (``p.jax()``,
an alias, two tensors of one array) is copied first, since a donated array is gone.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.launch import Launcher, checks_results, copy_array
from sbpjax._core.engines.runtimes import Engine
from sbpjax._core.jax_private import FOUND_NAN, ClosedJaxpr
from sbpjax._core.planner.prices.cost import DEFAULT, CostModel
from sbpjax._core.programs.normalise import Program as FlatProgram
from sbpjax._core.programs.plan import Plan
from sbpjax._core.runtime import processes, sizes
from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax._core.runtime.compilation_cache import compile_cached
from sbpjax._core.runtime.progress import show_phase
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch.abstract import check_runnable
from sbpjax._core.tensor.storage.exchange import Run, advance_counter, exchange
from sbpjax._core.tensor.storage.payload import payloads
from sbpjax._core.tensor.storage.storage import drop_own_cell
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.host_inputs import HostInputs
from sbpjax.graph.auto.graph import AbstractState, Auto, layouts_of_slots
from sbpjax.sbp import multi_host
from sbpjax.sbp.abstract import Abstract

from .agreement import agree_on_numbers, check_same_program
from .on_engine import on_engine
from .outputs import Outputs, nan_error, raise_if_nonfinite
from .slots import StateSlot

log = logging.getLogger("sbpjax.graph")
NO_SEED = np.zeros(2, np.int64)


@dataclass(frozen=True)
class Options:
    """How a program is compiled; part of its key.

    Attributes:
        lowering: ``"spmd"`` (explicit collectives) or ``"gspmd"`` (sharding constraints, collectives left to XLA).
        roll: run layers that repeat at least so often as loops over stacks of their state; 0 for never.
        cost: the prices by which the planner chooses.
        memory_bytes: the limit of one device; None for no limit.
        auto: the state that the planner lays out; None for its choice without auto parallelism.
        compiler_options: the user's options of XLA's compiler, by name.
        engine: the engine that runs it instead of XLA; None for XLA.
    """

    lowering: str = "spmd"
    roll: int = 0
    cost: CostModel = DEFAULT
    memory_bytes: float | None = None
    auto: Auto | None = None
    compiler_options: tuple[tuple[str, object], ...] = ()
    engine: Engine | None = None


@dataclass(eq=False, repr=False)
class Program:
    """One program, ready to be compiled and run: traced and planned (`build_program`), or read from files (`loaded`).

    Attributes:
        operation: the user's request, for messages.
        call: the program as a ``jax.jit`` function of physical arrays.
        structs: physical shape, dtype and sharding of every input.
        placement: where it runs, None on one device.
        slots: how it takes the state's tensors, one per input.
        written: the numbers of the slots that it writes.
        captured: the tensors that the function reads without being given them.
        in_layouts: the layouts of its inputs, None on one device and for numbers.
        out_layouts: the layouts of its outputs.
        outputs: puts the outputs where they belong.
        is_random: whether it draws random numbers.
        number_names: the names of the numbers among its inputs, such as learning rates.
        loose: positions of inputs that come without a layout, and go to every device.
        local_arguments: positions of local arguments with dims, which the planner laid out.
        is_polymorphic: whether a dim of its inputs has no size.
        jaxpr: the traced program, in the logical view; None of a program from files, as all that follows.
        flat: the same, flat, as it is planned.
        plan: the layouts chosen, None on one device.
        options: how it was compiled.
        free_slots: the numbers of the slots whose layouts the planner chose.
        requested_codes: the nd-sbp of every input before the planner chose, None on one device.
        user_plan: the layouts that a file of the user's pins, a `sbpjax.graph.program.user_plan.UserPlan`.
        host_inputs: the inputs that the host works out of the arguments before each call, empty for most programs.
        unsettled: the traced program, as text, of a program that stores tensors where its function may find them in the
            next call; None once such a call was traced and gave the same.
        seconds: how long each phase took: ``trace``, ``plan``, ``compile``.
        change: the difference from the program before, empty of the first one; logged once it is compiled.
        scope: the module calls of a graph's trace, for `repr`.
        arguments: the arguments of that trace, without data.
        exported: of a program from files, the result of `jax.export`.
        pipeline: None; of a `sbpjax.graph.pipeline.program.PipelinedProgram` its tasks and schedule.
    """

    operation: str
    call: Any
    structs: list[jax.ShapeDtypeStruct]
    placement: Any
    slots: list[StateSlot]
    written: list[int]
    captured: list[Tensor]
    in_layouts: list[Any]
    out_layouts: list[Any]
    outputs: Outputs
    is_random: bool
    number_names: tuple[str, ...]
    loose: list[int]
    local_arguments: Sequence[int] = ()
    is_polymorphic: bool = False
    jaxpr: ClosedJaxpr | None = None
    flat: FlatProgram | None = None
    plan: Plan | None = None
    options: Options = Options()
    free_slots: Sequence[int] = ()
    requested_codes: tuple | None = None
    user_plan: Any = None
    host_inputs: HostInputs | None = None
    unsettled: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    change: str = ""
    scope: Any = None
    arguments: Any = None
    pipeline: Any = None
    exported: Any = None

    def __post_init__(self) -> None:
        self._compiled: Any = None
        self._launcher: tuple[Any, Launcher | None] | None = None
        # Records its runs, if several processes run it.
        self._together: Any = None
        self._held: list[tuple[float | None, Any]] = [(None, None)] * len(self.number_names)
        self._present = self.placement is None or self.placement.is_present
        self._no_seed: Any = NO_SEED
        if self.is_polymorphic:  # `compile` puts it on the device for others
            self._no_seed = multi_host.put_replicated(NO_SEED, self._where(0))

    def lay_out(self, stand_ins: AbstractState, state: State) -> None:
        """Convert the state to the layouts of this program's inputs."""
        chosen = {number: self.in_layouts[1 + number] for number in self.free_slots}
        stand_ins.lay_out(state.tensors, layouts_of_slots(self.slots, chosen))

    # -- compile ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        where = "one device" if self.placement is None else repr(self.placement)
        how = "compiled" if self.is_compiled else "not compiled"
        return f"<program of {self.operation} on {where}, {how}>"

    @property
    def is_compiled(self) -> bool:
        """Whether `compile` ran."""
        return self._compiled is not None

    @property
    def is_simple(self) -> bool:
        """Whether it is compiled and takes its state and arguments as they are, in one process."""
        spread_out = self.placement is not None and self.placement.spans_processes
        plain = self.outputs.plain and not (self.outputs.left or self.loose or self.local_arguments or self.host_inputs)
        return self.is_compiled and self.options.engine is None and plain and self._present and not spread_out

    @hide_mesh
    def lower(self):
        """Return the lowered program; nothing is compiled."""
        return self.call.lower(*self.structs)

    @hide_mesh
    def compile(self, to_run: bool = False):
        """Return the compiled program (`jax.stages.Compiled`); the first call compiles it.

        Args:
            to_run: it is about to run: if it is a program of several ranks, they compare it first.
        """
        if self.options.engine is not None:
            if self._compiled is None:
                start = time.perf_counter()
                self._compiled = on_engine(self, self.options.engine)
                self.seconds["compile"] = time.perf_counter() - start
                log_change(self)
            return self._compiled
        if self.is_polymorphic:
            # XLA needs sizes: JAX compiles it for each that it is called with.
            return self.call
        if self._compiled is None:
            start = time.perf_counter()
            lowered = self.lower()
            spans = self.placement is not None and self.placement.spans_processes
            # Megabytes for a large step, and only other ranks need it.
            text = lowered.as_text() if self.placement is not None and processes.current().size > 1 else ""
            if to_run and text:
                inputs = [f"{s.dtype}{list(s.shape)} as {getattr(s.sharding, 'spec', None)}" for s in self.structs]
                check_same_program(self.operation, inputs, text)
            if spans:
                # Without the graph's number: ranks that made other graphs before this one count differently.
                name = re.sub(r"_\d+\b", "", self.operation.split("\n")[0])
                devices = self.placement.devices
                self._together = multi_host.together(devices, name, text, numbered=True, names=self.number_names)
            here = to_run and (self.placement is None or self.placement.type == "cpu")
            if here and not spans:
                sizes.check_results(self.operation, lowered.out_info, self.structs)
            with show_phase(self.operation, "compiling"):
                compiled = compile_cached(lowered)
            if here:
                sizes.check_compiled(self.operation, compiled, self._num_local_ranks())
            self._compiled = compiled
            if to_run and spans:
                multi_host.rendezvous(self.operation, self.placement.devices)  # some may have compiled longer
            self.seconds["compile"] = time.perf_counter() - start
            log_change(self)
            # On the device once, since a NumPy array goes there every time.
            if self._present and not self.is_random:
                self._no_seed = multi_host.put_replicated(NO_SEED, self._where(0))
        return self._compiled

    def _num_local_ranks(self) -> int:
        """Return on how many devices this process runs the program."""
        if self.placement is None:
            return 1
        here = jax.process_index()
        return sum(device.process_index == here for device in self.placement.devices.flat)

    def _where(self, place: int) -> Any:
        """Return the device of an input that is no tensor: that of the others, if any of them is bound to one."""
        bound = (struct.sharding for struct in self.structs if struct.sharding is not None)
        return self.structs[place].sharding or next(bound, None)

    # -- run -------------------------------------------------------------------------------------------------------

    def run(self, state: State, arguments: list, done: list | None = None):
        """Run the program, write the new state, and return the function's result.

        Args:
            state: the state.
            arguments: the tensors that the function is given.
            done: a list that gets an entry as the state is written.
        """
        if self.host_inputs:  # first: its owner may write into the state
            self.host_inputs.feed(arguments)
        tensors = state.tensors
        if self.outputs.plain:
            arrays = payloads(tensors)
        else:
            arrays = [slot.array([tensors[i] for i in slot.places]) for slot in self.slots]
        passed_in = payloads(arguments)
        # By type of all, in C: this runs before every step, over every tensor of the state.
        if Abstract in map(type, arrays) or Abstract in map(type, passed_in) or not self._present:
            check_runnable(self.operation, self.placement, (*tensors, *arguments))
        compiled = self._compiled or self.compile(to_run=True)
        numbers = state.numbers()
        # Before the first run only: later ones are compared through the collective traces of the runs (`_together`).
        if numbers and self._held[0] == (None, None) and self.placement is not None and processes.current().size > 1:
            agree_on_numbers(self.operation, state, numbers)
        if self._together is not None:
            self._together.note(tuple(numbers))
        generator = default_generator
        seed = np.array((generator._seed, generator._counter), np.int64) if self.is_random else self._no_seed
        if self.is_random and self.placement is not None and self.placement.spans_processes:
            seed = multi_host.replicate_from_first(seed, self.placement)
        # The call takes the memory of donated arrays: an array that the user holds too would be lost to him, so it is
        # copied. Only the reference count shows it; a payload that nothing else holds has `UNSHARED`. The same holds
        # for arrays that Python looks at between the call and the write: an interrupt there would lose them.
        looked_at = checks_results()
        plan = None if looked_at else self.outputs.plan(tensors)
        launcher = None if plan is None or not self.written else self.launcher(compiled)
        kept = launcher is None and self.options.engine is None
        for i in self.written:
            if sys.getrefcount(arrays[i]) == UNSHARED and not kept:
                continue
            slot = self.slots[i]
            alone = slot.own and drop_own_cell(tensors[slot.places[0]])
            # A cell holds the array too, and so does the stack of stored tensors.
            held = UNSHARED + (not alone)
            if sys.getrefcount(arrays[i]) > held or kept:
                arrays[i] = copy_array(arrays[i])
        numbers = self._on_device(numbers)
        inputs = [seed, *arrays, *numbers, *passed_in, *payloads(self.captured)]
        del arrays
        if self.loose:
            self._replicate(inputs)
        for i in self.local_arguments:
            inputs[i] = conversions.from_logical(inputs[i], self.placement, self.in_layouts[i].sbp)[0]
        count = len(self.written)
        try:
            if plan is not None and launcher is not None:
                run = Run(launcher, inputs, plan)
                exchange(run, also=self.count_random if self.is_random else None, done=done)
                return self.outputs.rebuilt(run.outs[count:], state)
            outs = compiled(*inputs)
            if looked_at:
                raise_if_nonfinite(outs)
        except FOUND_NAN as error:
            raise nan_error(self.operation, error) from None
        except jax.errors.JaxRuntimeError as error:
            raise self.run_error(error) from None
        self.outputs.write(
            tensors, outs[:count], self.count_random(), () if done is None else map(done.append, (True,))
        )
        return self.outputs.rebuilt(outs[count:], state)

    def run_error(self, error: Exception) -> Exception:
        """Return what to raise for an error of a run: of one without memory, the reason in words."""
        return sizes.out_of_memory(self.operation, "results and intermediate values", error) or error

    def launcher(self, compiled: Any) -> Launcher | None:
        """Return the launcher of the compiled program in an exchange; None if it is not XLA that runs it."""
        if self._launcher is None or self._launcher[0] is not compiled:
            # The result of `jax.jit` finds a program for every size.
            find = None
            if isinstance(compiled, jax.stages.Compiled):
                find = lambda _: compiled  # noqa: E731
            elif isinstance(compiled, jax.stages.Wrapped):
                find = lambda inputs: compile_cached(compiled.lower(*inputs))  # noqa: E731
            self._launcher = compiled, None if find is None else Launcher(find, "step")
        return self._launcher[1]

    def count_random(self) -> Iterable:
        """Return an iterator that counts the random numbers of a run."""
        # Random ops fold their numbers into the key of the call, so a call counts once, however many draw.
        return advance_counter(default_generator) if self.is_random else ()

    def _on_device(self, numbers: list[float]) -> list:
        """Return the numbers, those that stay as they were on the device: a number goes there in every call."""
        found: list = []
        for i, number in enumerate(numbers):
            value, array = self._held[i]
            if number != value:
                self._held[i] = number, None
            elif array is None:
                place = 1 + len(self.slots) + i
                array = multi_host.put_replicated(np.asarray(number, self.structs[place].dtype), self._where(place))
                self._held[i] = number, array
            found.append(number if array is None or number != value else array)
        return found

    def _replicate(self, inputs: list) -> None:
        for i in self.loose:
            if isinstance(inputs[i], jax.Array):
                inputs[i] = multi_host.put_replicated(inputs[i], self.structs[i].sharding)


def log_change(program: Any) -> None:
    """Log in one line what was compiled after the first program, and how long it took."""
    if program.change:
        took = sum(program.seconds.values())
        log.warning("%s recompiled in %.1f s: %s", program.operation.removesuffix(".build"), took, program.change)
        program.change = ""


def _references(arrays: list, place: int) -> int:
    return sys.getrefcount(arrays[place])


class _Holder:
    def __init__(self) -> None:
        self.array = object()


_HOLDER = _Holder()
# The reference count of a payload that its tensor and one list hold, and nothing else.
UNSHARED = _references([_HOLDER.array], 0)
