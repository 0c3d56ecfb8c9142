"""Fast path for repeated calls: skips validation when nothing changed since the last call.

A step of a small model takes 3 ms on a CPU, and the data that a graph checks between two steps is in memory that the
step has pushed out of the caches: 15 µs for every list of 20 tensors. So only this is looked at:

    changes.now                    moved by any change of modules, optimizers and options (`tensor.change_mark`)
    _cell, _layout, _edge          of every tensor of the state: views, boxing, requires_grad
    references to its payload      a donated array that something else holds would be lost to it
    shape, dtype, place            of every argument
    lr                             of every group of parameters

dtypes and shapes of the state are left to JAX, which compares them anyway and refuses before it takes anything. Where
any of it differs, nothing has happened, and the graph takes the full path.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np
from jax.errors import JaxRuntimeError

from sbpjax._core.compiler.launch import checks_results
from sbpjax._core.jax_private import ArrayImpl
from sbpjax._core.runtime import processes
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.exchange import Plan, Run, exchange, next_versions
from sbpjax._core.tensor.storage.payload import is_array, node_of, payload, payloads, unchanged_payloads
from sbpjax._core.tensor.storage.storage import drop_own_cell
from sbpjax._core.tensor.storage.version_counter import changes
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import Call

from .program import Program

CACHE_MISS = object()


class FastPath:
    """A call that may come again.

    Args:
        program: the program, which ran for this call.
        state: its state.
        call: the arguments.
        static: the keys of the static ones.
        mark: `changes.now` as it was before the state was looked at.
    """

    __slots__ = (
        "_arguments", "_autocast", "_edges", "_flat", "_layouts", "_lr", "_mark", "_numbers", "_one", "_program",
        "_state", "_static", "_structure", "_tensors", "_written",
    )  # fmt: skip

    def __init__(self, program: Program, state: State, call: Call, static: list, mark: object) -> None:
        self._program, self._state, self._tensors = program, state, state.tensors
        self._structure, self._static = call.structure, static
        self._flat = len(call.tensors) == len(call.leaves) and call.is_flat
        self._one = program.outputs.single
        self._layouts = [t.layout for t in state.tensors]
        self._edges = [node_of(t) for t in state.tensors]
        self._written = None if len(program.written) == len(state.tensors) else program.written
        self._arguments = [
            (tuple(payload(x).shape), payload(x).dtype, x.layout, not x.requires_grad, payload(x).sharding)
            for x in call.tensors
        ]
        self._lr = [(group, group[name]) for group, name in state.options if name == "lr"]
        self._numbers = program._on_device(state.numbers())
        self._autocast = mode.autocast
        self._mark = mark

    def again(self, args: tuple, kwargs: dict, done: list | None = None) -> Any:
        """Run the program once more and return its result, or `CACHE_MISS` if it may not fit; see `Program.run`."""
        if changes.now is not self._mark or mode.autocast is not self._autocast or checks_results():
            return CACHE_MISS
        if mode.touch is not None or self._state._scales and not self._state.holds_scalers():
            return CACHE_MISS
        if not self._flat or kwargs:
            call = Call(args, kwargs)
            if call.structure != self._structure or call.static() != self._static:
                return CACHE_MISS
            args = tuple(call.tensors)
        if len(args) != len(self._arguments):
            return CACHE_MISS
        given = []
        for x, (shape, dtype, layout, leaf, place) in zip(args, self._arguments):
            if not isinstance(x, Tensor):
                return CACHE_MISS
            array = payload(x)
            # By class, since a tracer is a `jax.Array` too; layouts are interned.
            if array.__class__ is not ArrayImpl or x.layout is not layout or (not x.requires_grad) is not leaf:
                return CACHE_MISS
            aval = array.aval
            if aval.shape != shape or aval.dtype != dtype:
                return CACHE_MISS
            # The place of a global argument is in its layout; a local one may have come to another device.
            if layout is None and array.sharding is not place and array.sharding != place:
                return CACHE_MISS
            given.append(array)
        program, tensors = self._program, self._tensors
        arrays = unchanged_payloads(tensors, self._layouts, self._edges)
        if arrays is None:
            return CACHE_MISS
        written = arrays if self._written is None else map(arrays.__getitem__, self._written)
        # Donating an array that something else holds would take it away there; the full path copies it.
        if max(map(getrefcount, written), default=0) > _ALONE:
            return CACHE_MISS
        for group, lr in self._lr:
            if group["lr"] != lr:
                self._lr = [(group, group["lr"]) for group, _ in self._lr]
                self._numbers = None
                break
        numbers = self._numbers
        if numbers is None:
            numbers = program._on_device(self._state.numbers())
            # All are on the device, as they are after two calls with the same ones; until then each call sends some.
            if not any(n.__class__ is float for n in numbers):
                self._numbers = numbers
        seed = program._no_seed
        if program.is_random:
            seed = np.array((default_generator._seed, default_generator._counter), np.int64)
        if program.captured:
            given += payloads(program.captured)
        launcher = program.launcher(program._compiled)
        if launcher is None:
            return CACHE_MISS
        inputs = [seed, *arrays, *numbers, *given]
        del arrays, written, given
        targets = tensors if self._written is None else [tensors[i] for i in self._written]
        run = Run(launcher, inputs, Plan(targets, next_versions(targets)))
        try:
            exchange(run, also=program.count_random if program.is_random else None, done=done)
        except (TypeError, ValueError):  # JAX refuses the state; the full path finds the change
            return CACHE_MISS
        except JaxRuntimeError as error:
            raise program.run_error(error) from None
        if self._one is None:
            return program.outputs.rebuilt(run.outs[len(targets) :])
        return wrap_any(run.outs[-1], self._one[0])


def fast_path_of(program: Any, state: State, call: Call, static: list, mark: object) -> FastPath | None:
    """Return the fast path of a call, None if more has to be looked at than `FastPath` does."""
    # With several ranks each run is noted for the others to compare, by the full path.
    if (
        type(program) is not Program
        or not program.out_layouts
        or not program.is_simple
        or not state.reports_changes()
        or processes.current().size > 1
    ):
        return None
    for t in state.tensors:
        if not drop_own_cell(t) or not is_array(t):
            return None
    if any(payload(x).__class__ is not ArrayImpl for x in call.tensors):
        return None
    if any(layout is not state.tensors[i].layout for i, layout in zip(program.written, program.outputs.state_layouts)):
        return None
    return FastPath(program, state, call, static, mark)


def _max_refcount(arrays: list) -> int:
    return max(map(getrefcount, arrays))


class _Holder:
    def __init__(self) -> None:
        self.array = object()


_HOLDER = _Holder()
# The reference count of a payload that its tensor and one list hold, and nothing else.
_ALONE = _max_refcount([_HOLDER.array])
