"""Capture: run a function of tensors on tracers, with the state it changes as inputs and outputs.

A training step reads parameters, writes them in place, and moves optimizer state and the random stream along.
`State` lists those tensors, puts tracers into their handles while the function is traced, reads what the function
left there, and puts the arrays back: a trace, even one that fails, changes nothing.
"""

from __future__ import annotations

import contextlib

import jax

from sbpjax.tensor import Tensor
from sbpjax.tensor.mode import mode
from sbpjax.tensor.traced import TracedLayout


class State:
    """The tensors and numbers that a captured function may change or read anew on every call.

    Args:
        owners: modules, optimizers, tensors, or nested lists of them.
    """

    def __init__(self, owners) -> None:
        self.tensors: list[Tensor] = []
        self.options: list[tuple[dict, str]] = []
        self.modules: list = []
        self.fixed: list = []
        self.optimizers: list = []
        seen: set[int] = set()
        for owner in _flat(owners):
            for tensor in self._tensors_of(owner):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    self.tensors.append(tensor)

    def _tensors_of(self, owner):
        if isinstance(owner, Tensor):
            return [owner]
        if hasattr(owner, "state_tensors"):
            owner.prepare()
            self.optimizers.append(owner)
            self.options += owner.dynamic_options()
            self.fixed.append(owner.static_options())
            return [p for group in owner.param_groups for p in group["params"]] + owner.state_tensors()
        if hasattr(owner, "named_modules"):
            self.modules += list(owner.modules())
            return [*owner.parameters(), *owner.buffers()]
        raise TypeError(f"state of type {type(owner).__name__}: give modules, optimizers or tensors")

    def arrays(self) -> list:
        """Return the payloads of the tensors, then the numbers."""
        return [t._fresh()._array for t in self.tensors] + [float(group[name]) for group, name in self.options]

    def layouts(self) -> list:
        """Return the layouts of the tensors, then None for each number."""
        return [t._layout for t in self.tensors] + [None] * len(self.options)

    def signature(self) -> tuple:
        """Return what a program traced on this state depends on apart from the values."""
        return (
            tuple((t._layout, t.dtype, tuple(t.shape), t.requires_grad) for t in self.tensors),
            tuple(m.training for m in self.modules),
            tuple(self.fixed),
        )

    @contextlib.contextmanager
    def traced(self, tracers):
        """Put tracers into the handles within the block, and the arrays back after it."""
        saved = [(t._array, t._layout, t._plain, t._cell, t._ver, t.grad) for t in self.tensors]
        numbers = [group[name] for group, name in self.options]
        try:
            for tensor, tracer in zip(self.tensors, tracers, strict=False):
                place_tracer(tensor, tracer)
                tensor._cell = None
                tensor.grad = None
            for (group, name), tracer in zip(self.options, tracers[len(self.tensors) :], strict=True):
                group[name] = tracer
            yield
        finally:
            for tensor, (array, layout, plain, cell, version, grad) in zip(self.tensors, saved, strict=True):
                tensor._array, tensor._layout, tensor._plain = array, layout, plain
                tensor._cell, tensor._ver = cell, version
                tensor.grad = grad
            for (group, name), number in zip(self.options, numbers, strict=True):
                group[name] = number

    def write(self, arrays, layouts) -> None:
        """Write what a program returned into the handles."""
        for tensor, array, layout in zip(self.tensors, arrays, layouts, strict=True):
            tensor._set(array, layout)


def place_tracer(tensor: Tensor, tracer) -> None:
    """Make a tensor's payload a tracer of its logical value."""
    if tensor._layout is not None and tensor._layout.shape is not None:
        tensor._layout = TracedLayout(tensor._layout.placement)
    tensor._array = tracer
    tensor._plain = False


class Lifted:
    """Global tensors that a function reads without being given them: they become inputs of its program."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.tracers: dict[int, object] = {}
        self.complete = True

    @contextlib.contextmanager
    def collecting(self, tracers):
        """Answer `mode.lift` within the block: with the tracers of known tensors, and with zeros for new ones."""
        self.tracers = {id(t): tracer for t, tracer in zip(self.tensors, tracers, strict=True)}
        self.complete = True
        before, mode.lift = mode.lift, self._lift
        try:
            yield
        finally:
            mode.lift = before

    def _lift(self, tensor: Tensor):
        found = self.tracers.get(id(tensor))
        if found is None:
            self.complete = False
            self.tensors.append(tensor)
            found = self.tracers[id(tensor)] = jax.numpy.zeros(tensor._layout.shape, tensor._layout.dtype)
        return found


def _flat(owners):
    if isinstance(owners, (list, tuple)):
        for owner in owners:
            yield from _flat(owner)
    elif owners is not None:
        yield owners
