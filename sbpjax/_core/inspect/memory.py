"""Memory of a step on one device, before it runs: by kind, from the compiled program.

    memory per device of compile(step) on sbpjax.placement.topology("v5p:4x4x4", [8, 8]), compiled
    parameters          215.4 MB
    optimizer state     430.8 MB
    inputs               16.4 kB
    activations           1.9 GB   made by the forward, read by the backward
    gathered copies     214.7 MB   parameters in the layout of a reader
    gradients               0 B
    temporaries         312.0 MB
    total                 3.1 GB   of 95.0 GB

Memory held before and after a step (parameters, buffers, optimizer state, inputs) is known from layouts. Memory that
lives during it is the compiler's figure; the shares of the kinds at the fullest moment are the plan's guess
(`_core.planner.memory.liveness`; for XLA:CPU and TPU `cpu_liveness` and `tpu_liveness` beside it), and temporaries are
the rest. `estimate` is that guess alone, without a compiler.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import jax

from sbpjax._core.planner.memory.cpu_liveness import spans_on
from sbpjax._core.planner.memory.limit import capacity_of
from sbpjax._core.planner.memory.liveness import LiveBytes
from sbpjax.errors import OutOfMemoryError

from .display import DisplayedReport, Table, bytes_text

_ROWS = (
    ("parameters", "parameters", ""),
    ("buffers", "buffers", ""),
    ("optimizer", "optimizer state", ""),
    ("inputs", "inputs", ""),
    ("results", "results", "next to the state, which is written in place"),
    ("activations", "activations", "made by the forward, read by the backward"),
    ("gathered", "gathered copies", "arguments in the layout of a reader"),
    ("gradients", "gradients", ""),
    ("temporaries", "temporaries", ""),
    ("padding", "padding", "of arguments, to the device's tiles"),
    ("code", "code", ""),
)
_ALWAYS = ("parameters", "optimizer", "activations", "gradients", "temporaries")


@dataclass(frozen=True, repr=False)
class Memory(DisplayedReport):
    """Bytes on one device.

    Attributes:
        parameters: the parameters of optimizers and modules.
        buffers: other tensors of modules.
        optimizer: the state of optimizers.
        inputs: arguments of the step, tensors that it reads from outside, numbers.
        results: the returned values, apart from state that is written in place.
        activations: made by the forward and read by the backward, at the fullest moment.
        gathered: copies of arguments in other layouts, at that moment.
        gradients: made by the backward and not yet used up, at that moment.
        temporaries: everything else that lives then.
        padding: padding added by the device's layout of the arguments.
        code: the program itself, where it is in the device's memory.
        compiled: whether the figures are the compiler's; else an estimate.
        capacity: the device's memory, None if unknown.
        title: the sized program, and its devices.
    """

    parameters: int = 0
    buffers: int = 0
    optimizer: int = 0
    inputs: int = 0
    results: int = 0
    activations: int = 0
    gathered: int = 0
    gradients: int = 0
    temporaries: int = 0
    padding: int = 0
    code: int = 0
    compiled: bool = False
    capacity: int | None = None
    title: str = ""

    @property
    def arguments(self) -> int:
        """Bytes held on the device before the step."""
        return self.parameters + self.buffers + self.optimizer + self.inputs

    @property
    def during(self) -> int:
        """Bytes that live on it only during the step."""
        return self.activations + self.gathered + self.gradients + self.temporaries

    @property
    def total(self) -> int:
        """All of it."""
        return self.arguments + self.during + self.results + self.padding + self.code

    @property
    def fits(self) -> bool | None:
        """Whether the device has that much; None if its memory is unknown."""
        return None if self.capacity is None else self.total <= self.capacity

    def rows(self) -> list[tuple[str, str, str]]:
        """Return ``(kind, bytes, remark)`` of every kind that there is."""
        found = []
        for field, name, remark in _ROWS:
            value = getattr(self, field)
            if value or field in _ALWAYS:
                found.append((name, bytes_text(value), remark))
        room = "" if self.capacity is None else f"of {bytes_text(self.capacity)}{'' if self.fits else ': does not fit'}"
        return [*found, ("total", bytes_text(self.total), room)]

    def _head(self) -> str:
        return f"memory per device of {self.title}, {'compiled' if self.compiled else 'estimated from the plan'}"

    def _blocks(self) -> Iterable[Any]:
        yield self._head(), Table([(name, count, f" {remark}") for name, count, remark in self.rows()], right=(1,))


def estimate(program, state) -> Memory:
    """Return the memory that a program needs, from its plan alone."""
    flat = program.flat if program.plan is None else program.plan.program
    live = spans_on(_device_type(program), flat)(flat, program.plan).at_peak()
    return replace(
        _resident_memory(program, state),
        results=_results(program),
        activations=live.activations,
        gathered=live.gathered,
        gradients=live.gradients,
        temporaries=live.temporaries,
    )


def memory(program, state) -> Memory:
    """Return the memory that a program needs, from the compiler; the first call compiles it."""
    guess = estimate(program, state)
    try:
        figures = program.compile().memory_analysis()
    except Exception as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and "memory" not in str(error).lower():
            raise
        raise _out_of_memory_error(program, guess, error) from None
    live = _shared_out(
        LiveBytes(guess.activations, guess.gathered, guess.gradients, guess.temporaries), figures.temp_size_in_bytes
    )
    return replace(
        guess,
        results=max(figures.output_size_in_bytes - figures.alias_size_in_bytes, 0),
        activations=live.activations,
        gathered=live.gathered,
        gradients=live.gradients,
        temporaries=live.temporaries,
        padding=max(figures.argument_size_in_bytes - guess.arguments, 0),
        code=figures.generated_code_size_in_bytes,
        compiled=True,
    )


def _device_type(program) -> str:
    """Return for whose compiler a program is: ``"cpu"``, ``"tpu"``, or another."""
    return jax.default_backend() if program.placement is None else program.placement.type


def _shared_out(guess: LiveBytes, total: int) -> LiveBytes:
    """Return the compiler's figure, shared out as in the plan's guess; a smaller total shrinks all kinds."""
    named = guess.activations + guess.gathered + guess.gradients
    if named <= total:
        return replace(guess, temporaries=total - named)
    shares = [value * total // named for value in (guess.activations, guess.gathered, guess.gradients)]
    return LiveBytes(*shares, temporaries=total - sum(shares))


def _resident_memory(program, state) -> Memory:
    """Return the bytes held on a device before and after the step, from the layouts."""
    kinds = state.kinds()
    sizes = [_on_device(struct) for struct in program.structs]
    count = dict.fromkeys(("parameters", "buffers", "optimizer"), 0)
    for slot, size in zip(program.slots, sizes[1:], strict=False):
        count[kinds[slot.places[0]]] += size  # of one tensor, or a stack of equal layers'
    where = "one device" if program.placement is None else repr(program.placement)
    return Memory(
        **count,
        inputs=sum(sizes[1 + len(program.slots) :]),
        capacity=capacity_of(program.placement),
        title=f"{program.operation} on {where}",
    )


def _on_device(struct) -> int:
    shape = struct.shape if struct.sharding is None else struct.sharding.shard_shape(struct.shape)
    return math.prod(shape) * struct.dtype.itemsize


def _results(program) -> int:
    """Return the bytes of a program's results besides the state that it writes."""
    skip = len(program.written)
    avals = program.jaxpr.out_avals[skip:]
    layouts = program.out_layouts[skip:]
    return sum(
        math.prod(aval.shape if layout is None else layout.local_shape) * getattr(aval.dtype, "itemsize", 4)
        for aval, layout in zip(avals, layouts, strict=True)
    )


def _out_of_memory_error(program, guess: Memory, error: Exception) -> OutOfMemoryError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return OutOfMemoryError(
        f"memory of {guess.title}",
        f"the compiler: {lines[0] if lines else type(error).__name__}",
        f"a step must fit in the device's memory; by the plan it needs {bytes_text(guess.total)}, "
        f"{bytes_text(guess.arguments)} of it state and inputs and {bytes_text(guess.activations)} activations",
        "split parameters over more ranks, checkpoint activations, or take a smaller batch",
    )
