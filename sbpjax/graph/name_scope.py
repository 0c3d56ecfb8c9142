"""`Scope`: module names and module calls during the trace of a graph.

Every call of a module inside ``build`` comes here (`mode.blocks`): its name is put on the ops that it traces, so that
plans, profiles and compiled programs name modules, and its inputs and outputs are kept for ``repr``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.convert import move_to_stage
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.storage.payload import refresh_tensor
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax.sbp import Layout

from .module_proxy import checkpoints_of, stages_of
from .program.forward_backward import POLICIES
from .repeated_layers import Blocks


class ModuleTensor(NamedTuple):
    """A tensor that went into or came out of a module.

    Attributes:
        shape: its shape.
        dtype: its dtype.
        placement: None for a local one.
    """

    shape: tuple[int, ...]
    dtype: Any
    placement: Any


class ModuleCall(NamedTuple):
    """One call of a module.

    Attributes:
        inputs: for every leaf of its arguments its tensor, else None.
        outputs: the same for its results.
        arguments: the structure of ``(args, kwargs)``.
        results: the structure of its results.
    """

    inputs: list[ModuleTensor | None]
    outputs: list[ModuleTensor | None]
    arguments: Any
    results: Any


class Scope:
    """The module calls of one trace.

    Args:
        graph: the graph that is traced.
        state: its state.
        gradients: place of a state tensor → the layout in which its gradient is wanted.

    Attributes:
        calls: of each module name its calls, in order.
    """

    def __init__(self, graph, state: State, gradients: dict[int, Layout]) -> None:
        self._paths: dict[int, str] = {}
        for name, block in graph._g.blocks.items():
            for path, module in block.named_modules(prefix=name):
                self._paths[id(module)] = path
        self.calls: dict[str, list[ModuleCall]] = {}
        self._around = ""
        self._stages = {id(module): place for module, place in stages_of(graph).items()}
        policies = {id(m): "nothing" if p is True else POLICIES[p] for m, p in checkpoints_of(graph).items()}
        reuse = graph.config.block_scan is not False
        named = {id(state.tensors[i]): layout for i, layout in gradients.items()}
        per_use = graph.config.zero_stage == 3 and graph.config.zero_restore_level == 1
        self._blocks = Blocks(state.modules, policies, reuse, named, not per_use) if policies or reuse else None
        if self._blocks is not None:
            self._blocks.inside, self._blocks.follow = _NameScopeRecorder(self), self._copy_twin_calls

    @contextlib.contextmanager
    def active(self):
        """Route calls of modules to this scope within the block."""
        # A program may be traced several times, until all its captured tensors are known; only the last trace counts.
        self.calls.clear()
        before, mode.blocks = mode.blocks, self
        try:
            yield
        finally:
            mode.blocks = before
            if self._blocks is not None:
                self._blocks.forget()

    def call(self, module, args: tuple, kwargs: dict) -> Any:
        """Run a module under its name."""
        return self.run_named(module, args, kwargs, self._inner)

    def run_named(self, module, args: tuple, kwargs: dict, run: Callable) -> Any:
        """Run a module under its name by a function of module and arguments."""
        path = self._paths.get(id(module))
        stage = self._stages.get(id(module))
        if stage is not None:
            args, kwargs = _on_stage((args, kwargs), stage)
        if path is None:
            return run(module, args, kwargs)
        around = self._around
        self._around = path
        try:
            # Only the part that the name adds to the enclosing one: JAX joins nested scopes, and readers of names join
            # them again by dots.
            with jax.named_scope(path.removeprefix(f"{around}.") if around else path):
                result = run(module, args, kwargs)
        finally:
            self._around = around
        inputs, arguments = _describe_leaves((args, kwargs))
        outputs, results = _describe_leaves(result)
        self.calls.setdefault(path, []).append(ModuleCall(inputs, outputs, arguments, results))
        return result

    def _inner(self, module, args: tuple, kwargs: dict) -> Any:
        if self._blocks is not None:
            return self._blocks.call(module, args, kwargs)
        return module._call_impl(args, kwargs)

    def _copy_twin_calls(self, first, module) -> None:
        """Record for the parts of a block that was not traced itself the calls of its twin's parts."""
        if first is module:
            return
        here, there = self._paths.get(id(module)), self._paths.get(id(first))
        for name, part in first.named_modules() if here and there else ():
            calls = self.calls.get(f"{there}.{name}")
            if part is not first and calls:
                self.calls.setdefault(f"{here}.{name}", []).append(calls[-1])


class _NameScopeRecorder:
    """Receives the calls of modules while a block is traced: names them, and makes no blocks of them."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def call(self, module, args: tuple, kwargs: dict) -> Any:
        return self._scope.run_named(module, args, kwargs, lambda m, a, k: m._call_impl(a, k))


def _on_stage(arguments: Any, placement: Any) -> Any:
    """Return the arguments of a module with every global tensor on the module's stage."""
    leaves, structure = tree.flatten(arguments)
    moved = [
        move_to_stage(x, placement) if isinstance(x, Tensor) and refresh_tensor(x).layout is not None else x
        for x in leaves
    ]
    return tree.unflatten(structure, moved)


def _describe_leaves(value: Any) -> tuple[list[ModuleTensor | None], Any]:
    leaves, structure = tree.flatten(value)
    return [_facts(x) if isinstance(x, Tensor) else None for x in leaves], structure


def _facts(x: Tensor) -> ModuleTensor:
    return ModuleTensor(tuple(x.shape), x.dtype, None if x.layout is None else x.layout.placement)
