"""Host inputs: tensors of a compiled step that the host computes from its arguments, before each call.

A table of a billion rows is in host memory, and a step needs the few thousand rows of its batch. They depend on the
ids, so the host has to look at these before the program runs:

    slots = host_input(owner, ids)        # in `build`: the program gets one more input, of the shape of ``ids``
    vectors = embedding(slots, cache)     # the rest is ordinary

Before every call ``owner.prepare`` gets the ids of all its lookups, may write into the tensors of the step's state, and
returns the slots. In eager code it is called at once. ``ids`` may be an argument of the step or computed from
arguments; values that depend on parameters are known on the device only, and are refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, jaxpr_as_fun, partial_eval
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh, outside_program
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.op_calls import inline_calls
from sbpjax._core.tensor.dispatch.traced import constant
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import is_traced, payload, put
from sbpjax.errors import GraphError
from sbpjax.sbp import Layout, multi_host
from sbpjax.sbp.algebra import B
from sbpjax.sbp.layout import layout_of


class Request(NamedTuple):
    """One lookup of a step.

    Attributes:
        keys: the integers, of any shape, local or global.
        note: further data given to `host_input`.
    """

    keys: Tensor
    note: Any


class Owner(Protocol):
    """Computes host inputs."""

    def prepare(self, requests: Sequence[Request], whole_step: bool) -> list[Tensor]:
        """Return for every request an int32 tensor of the shape and the layout of its keys.

        Args:
            requests: the lookups.
            whole_step: these are all lookups of a compiled step, so all before them are done with; in eager code each
                lookup comes alone.
        """
        ...


@dataclass
class _Lookup:
    owner: Owner
    note: Any
    argument: int | None  # which argument the keys are, None if they are computed
    shape: tuple[int, ...]
    layout: Layout | None
    tensor: Tensor


class HostInputs:
    """The host inputs of one traced step."""

    def __init__(self) -> None:
        self._lookups: list[_Lookup] = []
        self._keys: list = []  # of one trace: tracers of keys that are computed
        self._arguments: list = []
        self._tensors: list[Tensor] = []
        self._count = 0
        self._computed: Any = None
        self._needed: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._lookups)

    @contextlib.contextmanager
    def collecting(self, tracers: Sequence, tensors: Sequence[Tensor]) -> Iterator[None]:
        """Collect the calls of `host_input` within the block.

        Args:
            tracers: of the arguments.
            tensors: the arguments.
        """
        self._arguments, self._tensors = list(tracers), list(tensors)
        self._keys, self._count = [], 0
        _collectors.append(self)
        try:
            yield
        finally:
            _collectors.pop()
            self._arguments, self._tensors = [], []

    def outputs(self) -> list:
        """Return the tracers of computed keys: further outputs of the trace, which `split` takes off again."""
        return list(self._keys)

    def request_rows(self, owner: Owner, keys: Tensor, note: Any) -> Tensor:
        """Return the tensor of a host input in this trace."""
        tracer = payload(keys)
        place = next((i for i, x in enumerate(self._arguments) if x is tracer), None)
        layout = None
        if place is not None:
            layout = self._tensors[place].layout
        else:
            if not self._arguments or getattr(tracer, "_trace", None) is not getattr(self._arguments[0], "_trace", 0):
                raise _unsupported_lookup_error(keys)
            self._keys.append(tracer)
            if keys.is_global:  # where the planner puts it is not known yet
                everywhere = (B,) * len(keys.placement.hierarchy)
                layout = layout_of(keys.placement, everywhere, tuple(tracer.shape), np.dtype(np.int32))
        shape = tuple(tracer.shape)
        number, self._count = self._count, self._count + 1
        if number < len(self._lookups):
            known = self._lookups[number]
            if (known.shape, known.layout, known.argument) == (shape, layout, place) and known.owner is owner:
                known.note = note
                return known.tensor
            del self._lookups[number:]
        found = _Lookup(owner, note, place, shape, layout, _zeros(shape, layout))
        self._lookups.append(found)
        return found.tensor

    def split(self, closed: ClosedJaxpr, first: int, count: int) -> ClosedJaxpr:
        """Take the outputs of computed keys off a traced program, and keep the equations that compute them.

        Args:
            closed: the program.
            first: the position of its first argument.
            count: how many arguments there are.
        """
        if not self._keys:
            return closed
        jaxpr, n = closed.jaxpr, len(self._keys)
        self._keys = []
        info = jaxpr.debug_info.with_unknown_names()
        keys = closed.replace(jaxpr=jaxpr.replace(outvars=jaxpr.outvars[-n:], debug_info=info))
        flat = inline_calls(keys)
        # After `inline_calls` the constants are still those of the program, which a smaller one may leave unread.
        small, used = partial_eval.dce_jaxpr(flat.jaxpr, [True] * n, instantiate=False)
        self._needed = [i for i, is_used in enumerate(used) if is_used]
        if any(not first <= i < first + count for i in self._needed):
            raise _non_argument_keys_error()
        self._computed = jit_without_mesh(jaxpr_as_fun(flat.replace(jaxpr=small)))
        self._needed = [i - first for i in self._needed]
        return closed.replace(jaxpr=jaxpr.replace(outvars=jaxpr.outvars[:-n], debug_info=info))

    def feed(self, arguments: Sequence[Tensor]) -> None:
        """Let the owners work out their inputs for a call with these arguments."""
        computed: list = []
        if self._computed is not None:
            given = [arguments[i] for i in self._needed]
            if any(t.is_global and t.placement.spans_processes for t in given):
                raise _computed_keys_error()
            computed = list(self._computed(*[_value(t) for t in given]))
        per_owner: dict[int, list[tuple[_Lookup, Request]]] = {}
        for lookup in self._lookups:
            if lookup.argument is not None:
                keys = arguments[lookup.argument]
            else:
                keys = wrap_any(computed.pop(0), None)
                if lookup.layout is not None:
                    keys = keys.to_global(lookup.layout.placement, lookup.layout.sbp)
            per_owner.setdefault(id(lookup.owner), []).append((lookup, Request(keys, lookup.note)))
        for entries in per_owner.values():
            made = entries[0][0].owner.prepare([request for _, request in entries], whole_step=True)
            for (lookup, _), value in zip(entries, made, strict=True):
                put(lookup.tensor, payload(value), value.layout)


_collectors: list[HostInputs] = []


def host_input(owner: Owner, keys: Tensor, note: Any = None) -> Tensor:
    """Return the tensor that an owner computes from keys on the host: at once, or before each call of a traced step.

    Args:
        owner: its ``prepare(requests, whole_step)`` gets a `Request` per lookup and returns a tensor for each.
        keys: integers of any shape; in a step an argument, or computed from arguments alone.
        note: goes to ``prepare`` with the keys.

    Returns:
        An int32 tensor of the shape of ``keys``, in their layout.

    Raises:
        GraphError: the step is traced by something that has no arguments to read before a call, such as a pipeline, a
            loop over micro-batches or a checkpointed module, or the keys depend on the state.

    Example:
        >>> class Parity:
        ...     def prepare(self, requests, whole_step):
        ...         return [(r.keys % 2).to(flow.int32) for r in requests]
        >>> host_input(Parity(), flow.tensor([3, 4])).tolist()
        [1, 0]
    """
    if not is_traced(keys):
        return owner.prepare([Request(keys, note)], whole_step=False)[0]
    if not _collectors:
        raise _unsupported_lookup_error(keys)
    return _collectors[-1].request_rows(owner, keys, note)


def _value(t: Tensor) -> Any:
    return constant(t) if t.layout is None else np.asarray(t.numpy())


def _zeros(shape: tuple[int, ...], layout: Layout | None) -> Tensor:
    """Return a tensor of zeros with an array of its own, also while something is traced."""
    with outside_program():
        if layout is None:
            return wrap_any(jax.device_put(np.zeros(shape, np.int32)), None)
        mine = layout_of(layout.placement, layout.codes, shape, np.dtype(np.int32))
        return wrap_any(multi_host.from_logical(np.zeros(shape, np.int32), mine), mine)


def _unsupported_lookup_error(keys: Tensor) -> GraphError:
    return GraphError(
        "a lookup by key",
        f"keys {list(keys.shape)} inside a pipeline, micro-batches, a checkpointed module or a transform",
        "the host reads the keys before a step runs, and there sees the arguments of one whole step only",
        "look up in build itself, with set_gradient_accumulation_steps(1), on one placement",
    )


def _non_argument_keys_error() -> GraphError:
    return GraphError(
        "a lookup by key in a graph",
        "keys that depend on parameters, buffers or random numbers",
        "the host reads the keys before the step runs, so they are computed from its arguments alone",
        "compute the keys first, and give them to the graph as an argument",
    )


def _computed_keys_error() -> GraphError:
    return GraphError(
        "a lookup by key in a graph of several processes",
        "keys that are computed in build",
        "there each process reads its part of an argument, and computes nothing of the others'",
        "give the graph the keys themselves: graph(ids, ...)",
    )
