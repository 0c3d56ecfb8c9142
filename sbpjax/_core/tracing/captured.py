"""`Captured`: tensors that a function reads from outside become inputs of its program.

A trace of ``lambda x: x * scale + from_jax(table)`` meets two tensors that hold arrays, not tracers. ``scale`` exists
outside, and a later call must see its new value, so it has to be an input. The second is made anew by every trace, so
it is a constant. The difference shows when the trace is over: tensors that the function made for itself are gone by
then. So the function is traced once to see, and once more if something turns out to be an input.

``scale.detach()`` is made anew too, and yet shows a storage that exists outside: an alias of that storage is captured.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.explicit_axes import explicit_mesh
from sbpjax._core.tensor.dispatch.traced import constant
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.nodes.node import AccumulateGrad
from sbpjax._core.tensor.storage.payload import is_traced, node_of, payload, payload_metadata, weak
from sbpjax._core.tensor.storage.storage import alias_of, steps_of, storage_of
from sbpjax.sbp.abstract import Abstract


class Captured:
    """The tensors that traces of one function read from outside.

    Attributes:
        tensors: the inputs that they become, in order.
    """

    def __init__(self, tensors=()) -> None:
        self.tensors: list[Tensor] = list(tensors)
        self._values: dict[int, Any] = {}  # id of a tensor → the value that the trace reads for it
        self._showing: dict[tuple, int] = {}  # storage → id of the tensor that represents those that show it
        self._found: list[tuple] = []  # new ones of the trace, held so that no id comes twice
        self._left: list[tuple] = []  # the rest of them after the trace: references to tensor and storage, the steps
        self._leaves: set[int] = set()  # aliases in place of leaves that every trace makes, such as Parameter(x)
        self._read: set[int] = set()
        self._guessed = self._exact = False

    def examples(self) -> list[jax.ShapeDtypeStruct]:
        """Return the shapes and dtypes of the inputs."""
        return [example(t) for t in self.tensors]

    @contextlib.contextmanager
    def collecting(self, tracers):
        """Answer `mode.capture` within the block: with tracers of known tensors, and with the values of new ones."""
        self._values = {id(t): tracer for t, tracer in zip(self.tensors, tracers, strict=True)}
        for t in self.tensors:
            if not t.requires_grad and storage_of(t) is not None:
                for leaf in (False, True) if id(t) in self._leaves else (False,):
                    self._showing[*_storage(t), leaf] = id(t)
        self._read.clear()
        self._guessed = False
        before, mode.capture = mode.capture, self._capture
        try:
            yield
        finally:
            mode.capture = before
            self._left = [(weakref.ref(t), cell, shown) for t, cell, shown in self._found]
            self._found.clear()
            self._values.clear()
            self._showing.clear()

    def _capture(self, tensor: Tensor):
        key, shown = id(tensor), _storage_facts(tensor)
        if key not in self._values and shown:
            key = self._showing.get(shown, key)
        self._read.add(key)
        if key not in self._values:
            self._found.append((tensor, weak(storage_of(tensor) if shown else None), shown))
            self._values[key] = self._value(tensor)
            if shown and not tensor.requires_grad:
                self._showing[shown] = key
        return self._values[key]

    def _value(self, tensor: Tensor):
        """Return the value that a trace reads for a tensor that is no input yet, or zeros until the value is needed."""
        array, layout = payload(tensor), tensor.layout
        if isinstance(array, Tracer) or (layout is None and array.__class__ is not Abstract):
            return array
        if self._exact and array.__class__ is Abstract and layout is not None:
            # A constant on a machine that is not there: its program is compiled, and never runs. Its numbers are lost;
            # those in their place are none that a compiler could simplify a program by.
            count = math.prod(layout.shape)
            return (np.arange(1, count + 1) / (count + 1)).reshape(layout.shape).astype(layout.dtype)
        if self._exact:
            whole: Any = constant(tensor)
            return whole if layout is None else np.asarray(whole.addressable_data(0))
        self._guessed = True
        known = array if layout is None else layout
        # A first trace only finds the captured tensors; its results are thrown away, so a tensor's data need not be
        # gathered.
        return jnp.zeros(known.shape, known.dtype)

    def settle_inputs(self, last: bool = False) -> bool:
        """Take the tensors that outlived the trace among the inputs; return whether the trace is final.

        Args:
            last: there is no further trace: a tensor that is new in every trace and outlives it is a constant.
        """
        left, self._left = self._left, []
        if last:
            return True
        before = len(self.tensors)
        taken = set()
        for ref, cell_ref, shown in left:
            tensor, cell = ref(), cell_ref()
            if tensor is None and cell is not None and shown not in taken:
                tensor = alias_of(cell, shown[1])
                taken.add(shown)
                self._leaves.update([id(tensor)] if shown[2] else ())
            if tensor is not None:
                self.tensors.append(tensor)
        self._exact = True
        return len(self.tensors) == before and not self._guessed

    def drop_unread(self, closed: Any, first: int) -> Any:
        """Return a program without the inputs that its trace did not read, and forget them."""
        unread = {i for i, t in enumerate(self.tensors) if id(t) not in self._read}
        if not unread:
            return closed
        self.tensors = [t for i, t in enumerate(self.tensors) if i not in unread]
        jaxpr = closed.jaxpr
        kept = [v for i, v in enumerate(jaxpr.invars) if i - first not in unread]
        return closed.replace(jaxpr=jaxpr.replace(invars=kept, debug_info=jaxpr.debug_info.with_unknown_names()))


def _storage_facts(tensor: Tensor) -> tuple:
    """Return the storage that a tensor shows and whether it is a leaf of its own; () if no other tensor can show it."""
    edge = node_of(tensor)
    if storage_of(tensor) is None or is_traced(tensor):
        return ()
    return (*_storage(tensor), edge is not None) if edge is None or edge.__class__ is AccumulateGrad else ()


def _storage(tensor: Tensor) -> tuple:
    return id(storage_of(tensor)), steps_of(tensor)


def example(t: Tensor) -> jax.ShapeDtypeStruct:
    """Return the abstract value of a tensor in a trace: its logical shape and dtype, and a type of explicit axes."""
    layout = t.layout
    if layout is not None and layout.shape is not None:
        return jax.ShapeDtypeStruct(layout.shape, layout.dtype)
    array = payload_metadata(t)
    weak = layout is None and bool(getattr(array, "weak_type", False))
    typed = isinstance(array, Tracer) and explicit_mesh(array) is not None
    sharding = array.aval.sharding if typed else None
    return jax.ShapeDtypeStruct(array.shape, array.dtype, weak_type=weak, sharding=sharding)
