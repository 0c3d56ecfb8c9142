"""`Scope`: what a graph knows of its modules while it is traced.

Every call of a module inside ``build`` comes here (`mode.blocks`): its name goes onto the ops that it traces, so that
plans, profiles and compiled programs name modules, and what goes in and comes out is kept for ``repr``.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

import jax

from sbpjax.tensor import Tensor
from sbpjax.tensor.mode import mode

from . import tree
from .blocks import Blocks
from .capture import State
from .policies import POLICIES
from .proxy import checkpoints_of


class Seen(NamedTuple):
    """A tensor that went into or came out of a module.

    Attributes:
        path: where it stood among the arguments or results.
        shape: its shape.
        dtype: its dtype.
        placement: None for a local one.
    """

    path: str
    shape: tuple[int, ...]
    dtype: Any
    placement: Any


class Called(NamedTuple):
    """One call of a module.

    Attributes:
        inputs: the tensors among its arguments.
        outputs: those among its results.
    """

    inputs: list[Seen]
    outputs: list[Seen]


class Scope:
    """The module calls of one trace.

    Args:
        graph: the graph that is traced.
        state: its state.

    Attributes:
        calls: of each module name its calls, in order.
    """

    def __init__(self, graph, state: State) -> None:
        self._names: dict[int, tuple[str, str]] = {}
        for name, block in graph._g.blocks.items():
            for path, module in block.named_modules(prefix=name):
                self._names[id(module)] = path, path.rpartition(".")[2] if path != name else name
        self.calls: dict[str, list[Called]] = {}
        policies = {id(m): _policy(p) for m, p in checkpoints_of(graph).items()}
        reuse = graph.config.block_scan is not False
        self._blocks = Blocks(state.modules, policies, reuse) if policies or reuse else None

    @contextlib.contextmanager
    def active(self):
        """Let calls of modules come here within the block."""
        self.calls.clear()
        before, mode.blocks = mode.blocks, self
        try:
            yield
        finally:
            mode.blocks = before

    def call(self, module, args: tuple, kwargs: dict) -> Any:
        """Run a module under its name."""
        found = self._names.get(id(module))
        if found is None:
            return self._inner(module, args, kwargs)
        path, name = found
        with jax.named_scope(name):
            result = self._inner(module, args, kwargs)
        self.calls.setdefault(path, []).append(Called(_seen((args, kwargs)), _seen(result)))
        return result

    def _inner(self, module, args: tuple, kwargs: dict) -> Any:
        if self._blocks is not None:
            return self._blocks.call(module, args, kwargs)
        return module._run(args, kwargs)


def _policy(value: Any) -> Any:
    return "nothing" if value is True else POLICIES[value]


def _seen(value: Any) -> list[Seen]:
    leaves, structure = tree.flatten(value)
    if not any(isinstance(leaf, Tensor) for leaf in leaves):
        return []
    return [
        Seen(path, tuple(x.shape), x.dtype, None if x._layout is None else x._layout.placement)
        for path, x in zip(tree.paths(structure), leaves, strict=True)
        if isinstance(x, Tensor)
    ]
