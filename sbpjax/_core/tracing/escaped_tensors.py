"""`EscapedTensors`: tensors of a trace that outlive it in attributes, lists, dicts or caches of the user.

Worked case: ``if self.mask is None: self.mask = triu(ones(n, n))`` in `forward`. A trace runs that on tracers, and a
tracer is dead when the trace is over. So every tensor that a trace makes is noted (`mode.made`), and those that outlive
it are handled by their dependencies:

    constants, tensors that the program only reads    computed once, now: the tensor holds its value from here on, and
                                                      the function is traced again and finds it (`Recaptured`)
    arguments, random numbers, written state          further outputs of the program: every run stores them where the
                                                      function stored them
    the new value of a tensor of the state            ``self.mean = 0.9 * self.mean + 0.1 * x.mean()`` writes the state

A tensor of an inner trace (a layer that is traced once, a micro-batch) cannot be an output of the outer one. A trace
that kept one is repeated with these written out in line (`mode.inline`), which shows the constants among them.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import re
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.core import Tracer

from sbpjax._core.jax_private import ClosedJaxpr, jaxpr_as_fun, partial_eval
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh, outside_program
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.op_calls import inline_calls
from sbpjax._core.tensor.dispatch.traced import constant
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.storage.payload import (
    assign_after_trace,
    is_traced,
    kept_as,
    leave_tape,
    mark_kept,
    payload,
    payload_metadata,
    refresh_tensor,
)
from sbpjax._core.tracing.capture import STORED
from sbpjax.sbp import multi_host
from sbpjax.sbp.abstract import Abstract
from sbpjax.sbp.algebra import B
from sbpjax.sbp.layout import layout_of

_TABLES = ("_parameters", "_buffers")
_CONTAINERS = (dict, OrderedDict, list)
_DEPTH = 4
# The state is listed anew so often for one program: constants, then tensors made in every call, then their effects.
MOST_ATTEMPTS = 5
_ABSENT = object()


class Recaptured(Exception):
    """Tensors that a trace kept have their values now: the state is listed again, and the function traced again."""


class Place(NamedTuple):
    """Where a tensor is kept.

    Attributes:
        container: a dict or list.
        key: its key or index.
        owner: the module whose attributes the dict is, else None.
    """

    container: Any
    key: Any
    owner: Any = None

    def put(self, value: Any) -> None:
        """Store a value there, past methods that report changes."""
        if value is _ABSENT:
            with contextlib.suppress(KeyError, IndexError):
                del self.container[self.key]
        elif isinstance(self.container, OrderedDict):
            OrderedDict.__setitem__(self.container, self.key, value)
        elif isinstance(self.container, dict):
            dict.__setitem__(self.container, self.key, value)
        else:
            self.container[self.key : self.key + 1] = [value]

    def note_stored(self, stored: bool) -> None:
        """Note whether runs store into an attribute: its value is no part of a program's key then."""
        if self.owner is not None:
            names = STORED.setdefault(self.owner, set())
            names.add(self.key) if stored else names.discard(self.key)


class EscapedTensors:
    """Tensors that one trace keeps.

    Args:
        modules: the modules that it may store into.
        others: further objects, such as the graph.
    """

    def __init__(self, modules: Iterable[Any], others: Iterable[Any] = ()) -> None:
        self._made: list[Any] = []
        self._recorded: set[int] = set()
        self._before: list[tuple[Any, Any]] = []
        self._owners: dict[int, Any] = {}
        seen: set[int] = set()
        for owner in (*modules, *others):
            fields = vars(owner)
            self._owners[id(fields)] = owner
            self._snapshot(fields, seen, _DEPTH)
            for table in _TABLES:
                if table in fields:
                    self._snapshot(fields[table], seen, _DEPTH)

    def _snapshot(self, container: Any, seen: set[int], depth: int) -> None:
        if id(container) in seen:
            return
        seen.add(id(container))
        self._before.append((container, container.copy()))
        for value in container.values() if isinstance(container, dict) else container:
            if depth and value.__class__ in _CONTAINERS:
                self._snapshot(value, seen, depth - 1)
            elif depth and _is_helper(value):
                self._snapshot(vars(value), seen, depth - 1)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note the tensors that a trace makes within the block."""
        before, mode.made = mode.made, []
        try:
            yield
        finally:
            self._made, mode.made = mode.made, before

    def rewrite(self, tensors: Sequence[Tensor]) -> None:
        """Turn new tensors in the places of those of the state into writes of these."""
        owned = {id(t): t for t in tensors}
        for container, copy in self._before:
            pairs = copy.items() if isinstance(copy, dict) else enumerate(copy)
            for key, old in pairs:
                if not isinstance(old, Tensor) or id(old) not in owned:
                    continue
                new = _get(container, key)
                if new is old or not is_traced(new) or not alike(new, old) or kept_as(old) == "constant":
                    continue
                assign_after_trace(old, payload(new), refresh_tensor(new).layout, written=True)
                Place(container, key).put(old)

    def left(self) -> list[Tensor]:
        """Return the tensors over tracers that live on; they are off the tape, which would hold all others too."""
        found = self._live_tensors()
        self._recorded = {id(t) for t in found if t.requires_grad}
        leave_tape(found)
        del found
        found = self._live_tensors()
        if found and any(self.place_of(t) is None for t in found):
            del found
            gc.collect()  # objects in a circle of references are gone too
            found = self._live_tensors()
        return found

    def is_recorded(self, tensor: Tensor) -> bool:
        """Return whether a tensor of `left` was on the tape."""
        return id(tensor) in self._recorded

    def _live_tensors(self) -> list[Tensor]:
        tensors = [ref() for ref in self._made]
        return [t for t in tensors if t is not None and is_traced(t)]

    def place_of(self, tensor: Tensor) -> Place | None:
        """Return the place of a tensor, None if it is not among those recorded before the trace."""
        for container, _ in self._before:
            pairs = container.items() if isinstance(container, dict) else enumerate(container)
            for key, value in pairs:
                if value is tensor:
                    return Place(container, key, self._owners.get(id(container)))
        return None

    def before(self, place: Place) -> Any:
        """Return the content of a place before the trace."""
        return next((_get(copy, place.key) for container, copy in self._before if container is place.container), None)

    def undo(self, tensors: list[Tensor]) -> None:
        """Restore the places of tensors, and drop entries of other dicts and lists that hold them."""
        dead = {id(t): t for t in tensors}
        for container, copy in self._before:
            for key, value in list(container.items()) if isinstance(container, dict) else [*enumerate(container)][::-1]:
                if id(value) in dead:
                    Place(container, key).put(_get(copy, key))
        for tensor in dead.values():
            # Places that were not recorded before: a global dict, the cache of a function.
            for holder in gc.get_referrers(tensor):
                if isinstance(holder, functools._lru_cache_wrapper):
                    holder.cache_clear()
                if holder is dead or holder.__class__ not in _CONTAINERS or holder is tensors:
                    continue
                if isinstance(holder, dict):
                    for key in [k for k, v in holder.items() if v is tensor and "__builtins__" not in holder]:
                        del holder[key]
                else:
                    holder[:] = [v for v in holder if v is not tensor]

    def restore(self) -> None:
        """Put back all attributes and containers as they were before the trace."""
        for container, copy in self._before:
            if isinstance(container, list):
                container[:] = copy
                continue
            for key in [k for k in container if k not in copy]:
                del container[key]
            for key, value in copy.items():
                if container.get(key, _ABSENT) is not value:
                    Place(container, key).put(value)


def _is_helper(value: Any) -> bool:
    """Return whether a value is an object of a user's plain class, such as a rotary embedding that is no module."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return (
        package not in ("builtins", "jax", "jaxlib", "numpy", "collections", "sbpjax", "functools", "types", "weakref")
        and not isinstance(value, type)
        and not hasattr(kind, "named_modules")
        and isinstance(getattr(value, "__dict__", None), dict)
    )


def _get(container: Any, key: Any) -> Any:
    if isinstance(container, dict):
        return container.get(key, _ABSENT)
    return container[key] if key < len(container) else _ABSENT


def alike(new: Tensor, old: Tensor) -> bool:
    """Return whether a new tensor can be the value of an old one."""
    return tuple(new.shape) == tuple(old.shape) and new.dtype == old.dtype and new.is_global == old.is_global


# ------------------------------------------------------------------------------------------------------------ constants


def split_output_programs(closed: ClosedJaxpr, first: int, count: int) -> list[tuple[ClosedJaxpr, list[int]]]:
    """Return for some outputs of a program the small program that computes each, and the numbers of its inputs."""
    jaxpr = closed.jaxpr
    info = jaxpr.debug_info.with_unknown_names()
    some = inline_calls(
        closed.replace(jaxpr=jaxpr.replace(outvars=jaxpr.outvars[first : first + count], debug_info=info))
    )
    found = []
    for i in range(count):
        small, used = partial_eval.dce_jaxpr(some.jaxpr, [k == i for k in range(count)], instantiate=False)
        found.append((some.replace(jaxpr=small), [k for k, is_used in enumerate(used) if is_used]))
    return found


def evaluate_program(program: ClosedJaxpr, tensors: Sequence[Tensor]) -> Any:
    """Return the one output of a small program of tensors as an array; None if one of them has no data."""
    if any(isinstance(payload_metadata(t), Abstract) or is_traced(t) for t in tensors):
        return None
    with outside_program():
        values = [constant(t) if t.layout is None else np.asarray(constant(t).addressable_data(0)) for t in tensors]
        return jit_without_mesh(jaxpr_as_fun(program))(*values)[0]


def store_value(tensor: Tensor, array: Any, placement: Any) -> None:
    """Let a tensor that outlived its trace hold its value.

    ``placement``: where the step runs: a tensor that it made local is the same on all ranks, and becomes broadcast
    there.
    """
    known = refresh_tensor(tensor).layout
    if known is None and (placement is None or not array.ndim):
        assign_after_trace(tensor, array, None)
        mark_kept(tensor, "constant")
        return
    place = placement if known is None else known.placement
    # A sum, or a value that the planner has not laid out yet, is whole: it is read as such, and small.
    codes = tuple([c if c >= 0 else B for c in getattr(known, "pinned", None) or (B,) * len(place.hierarchy)])
    layout = layout_of(place, codes, tuple(array.shape), np.dtype(array.dtype))
    with outside_program():
        assign_after_trace(tensor, multi_host.from_logical(np.asarray(array), layout), layout)
    mark_kept(tensor, "constant")


# -------------------------------------------------------------------------------------------------------------- outputs


class Output:
    """A tensor that every run of a program stores anew.

    Args:
        tensor: the tensor of the trace.
        place: where it is kept; without one, its value goes into the tensor itself.
        constant: the value of every run, None if it is an output of the program.
        recorded: whether the tape of the run goes on to it.

    Attributes:
        tensor: returns the tensor, None if it is gone.
        constant: the value of every run.
    """

    def __init__(self, tensor: Tensor, place: Place | None, constant: Tensor | None, recorded: bool) -> None:
        self.tensor = weakref.ref(tensor)
        self._place = place
        self.constant = constant
        self._recorded = recorded

    def store(self, made: Tensor) -> None:
        """Store the value of a run: a new tensor, since the user may hold that of the run before."""
        if not self._recorded and made is not self.constant:
            leave_tape((made,))
        mark_kept(made, "output")
        if self._place is not None:
            self._place.put(made)
            return
        tensor = self.tensor()
        if tensor is not None:
            assign_after_trace(tensor, payload(made), made.layout)
            mark_kept(tensor, "output")

    def forget(self) -> None:
        """Let the stored tensor count as the user's own, which the next call reads as state."""
        tensor = self.tensor()
        if self._place is not None:
            tensor = _get(self._place.container, self._place.key)
            self._place.note_stored(False)
        if isinstance(tensor, Tensor):
            mark_kept(tensor, None)


def settle_escaped(
    kept: EscapedTensors,
    left: list[Tensor],
    closed: ClosedJaxpr,
    first: int,
    inputs: Sequence[Tensor | None],
    placement: Any,
    last: bool,
) -> tuple[ClosedJaxpr, list[Output]]:
    """Give kept tensors their values where these are the same in every call; return the tensors that the runs store.

    ``inputs``: the inputs of the program that it only reads; None for those that change from call to call.

    Returns:
        The program without the outputs that are constant, and for each tensor how runs store it.
    """
    if not left:
        return closed, []
    places = [kept.place_of(t) for t in left]
    constants: dict[int, Tensor] = {}
    again = False
    programs = split_output_programs(closed, first, len(left))
    for i, (tensor, place, (program, numbers)) in enumerate(zip(left, places, programs, strict=True)):
        old = None if place is None else kept.before(place)
        was = kept_as(old) if isinstance(old, Tensor) else None
        read = [inputs[n] for n in numbers]
        value = None if any(t is None for t in read) else evaluate_program(program, read)
        if value is not None:
            store_value(tensor, value, placement)
            constants[i] = tensor
            # Made in every call, though it was there: no state, a value that every run stores.
            if was is not None:
                mark_kept(tensor, "output")
            again |= was != "output"
        elif was == "constant" and alike(tensor, old):
            mark_kept(old, None)  # it is state, which the next trace writes
            again = True
    if again and not last:
        kept.undo([t for i, t in enumerate(left) if i not in constants])
        raise Recaptured
    for i, (tensor, place) in enumerate(zip(left, places, strict=True)):
        if place is not None:
            place.note_stored(kept_as(tensor) == "output" or i not in constants)
            if i not in constants:
                place.put(kept.before(place))  # until a run stores a value
    jaxpr = closed.jaxpr
    outvars = [v for i, v in enumerate(jaxpr.outvars) if i - first not in constants]
    closed = closed.replace(jaxpr=jaxpr.replace(outvars=outvars, debug_info=jaxpr.debug_info.with_unknown_names()))
    pairs = enumerate(zip(left, places, strict=True))
    return closed, [Output(t, place, constants.get(i), kept.is_recorded(t)) for i, (t, place) in pairs]


def common_placement(tensors: Iterable[Tensor]) -> Any:
    """Return the placement of the global tensors among some, None if there are none or several."""
    found = {t.layout.placement for t in tensors if t.layout is not None}
    return found.pop() if len(found) == 1 else None


def text_of(closed: ClosedJaxpr) -> str:
    """Return a program as text that is equal for equal ones."""
    return re.sub(r"0x[0-9a-f]+", "", str(closed.jaxpr))


def belongs_to_trace(tensor: Tensor, trace: Any) -> bool:
    """Return whether a tensor's tracer is one of a trace."""
    array = payload(tensor)
    return isinstance(array, Tracer) and array._trace is trace
