"""Base class of autograd nodes: a backward from the cotangents of outputs to those of inputs, and hooks.

`y = x * w` records a node with two edges: to the node that made ``x`` (or, for a leaf, to its `AccumulateGrad`)
and to that of ``w``. A tensor's `_edge` is its node, `_idx` its output number at that node, and a tensor
without an edge needs no grad.

Every node has a sequence number; an op's inputs always have smaller ones, so descending order is a valid order of
backward.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from sbpjax.errors import AutogradError

# One counter for all threads: ``next`` of a C iterator is atomic under the GIL, and order matters only within one
# thread's tape.
sequence = itertools.count().__next__
FREED = "freed"


class Node:
    """Base of the tape's nodes.

    Attributes:
        edges: for each input that can get a gradient its node, or None.
        idxs: for each edge the output number at that node.
        n_out: how many outputs the node has.
        seq: position on the tape.
        hooks: `HookTable` of the outputs, or None.
    """

    __slots__ = ("__weakref__", "edges", "hooks", "idxs", "seq")

    edges: Any
    hooks: Any
    idxs: Any
    seq: int
    n_out: Any = 1
    label = ""

    def name(self) -> str:
        """Return the name that ``grad_fn`` prints."""
        return self.label or type(self).__name__

    def backward(self, grads: list, create_graph: bool) -> tuple:
        """Return the gradient of each edge for the cotangents of the outputs (None counts as zero)."""
        raise NotImplementedError

    def convert_grads(self, grads: tuple) -> tuple:
        """Return the gradients of a recorded backward in the layouts of the inputs."""
        return grads

    def release(self) -> None:
        """Drop the values saved for backward."""

    @property
    def next_functions(self) -> tuple:
        """The nodes of the inputs, each with the number of its output."""
        return tuple(zip(self.edges, self.idxs, strict=True))

    def register_hook(self, hook):
        """Call ``hook(grad_inputs, grad_outputs)`` after this node's backward."""
        return table_of(self).add(self.hooks.post, hook)

    def register_prehook(self, hook):
        """Call ``hook(grad_outputs)`` before this node's backward."""
        return table_of(self).add(self.hooks.pre, hook)

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def __call__(self, *grads):
        """Run this node alone, as the tape would."""
        out = self.backward(list(grads), False)
        return out[0] if len(out) == 1 else out


class HookTable:
    """Hooks on one node: per output, before the whole node, after it; plus the tensors that retain their grad."""

    __slots__ = ("outputs", "post", "pre", "retain")

    def __init__(self) -> None:
        self.outputs: dict[int, dict] = {}
        self.pre: dict = {}
        self.post: dict = {}
        self.retain: dict[int, weakref.ref] = {}

    @staticmethod
    def add(table: dict, hook) -> RemovableHandle:
        """Append a hook to one of the tables."""
        return RemovableHandle(table, hook)

    def on_output(self, idx: int) -> dict:
        """Return the hooks of one output."""
        return self.outputs.setdefault(idx, {})


class RemovableHandle:
    """Handle of a registered hook; `remove` takes the hook away."""

    _next = itertools.count().__next__

    def __init__(self, table: dict, hook) -> None:
        self.id = RemovableHandle._next()
        self._table = weakref.WeakValueDictionary() if table is None else table
        table[self.id] = hook

    def remove(self) -> None:
        """Take the hook away; doing so twice does nothing."""
        self._table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


def table_of(node: Node) -> HookTable:
    """Return the hooks of a node, made on first use."""
    if node.hooks is None:
        node.hooks = HookTable()
    return node.hooks


def freed_error(name: str) -> AutogradError:
    """Return the error of a second walk over a node whose saved values are freed."""
    return AutogradError(
        f"backward through {name}",
        "its saved tensors were freed by an earlier backward()",
        "a graph can be walked once, unless it is retained",
        "call the first backward with retain_graph=True",
    )


class AccumulateGrad(Node):
    """The end of the tape at a leaf: adds the arriving gradient to the leaf's ``.grad``."""

    __slots__ = ("post", "ref")

    post: Any

    label = "accumulate_grad"

    def __init__(self, tensor) -> None:
        # Weak: the leaf holds its node, and a cycle per parameter would leave its memory to the garbage collector.
        self.ref = weakref.ref(tensor)
        self.edges = self.idxs = ()
        self.hooks = None
        self.post = None
        self.seq = -1

    @property
    def variable(self):
        """The leaf."""
        return self.ref()


def record(node: Node, edges, idxs, outs, places=(0,)) -> None:
    """Put a node on the tape.

    Args:
        node: the node, with the attributes of its own class set.
        edges: for each input that gets a gradient the node that it hangs on.
        idxs: for each of these nodes, which of its outputs the input is.
        outs: the tensors that the node's op returns.
        places: which of them have a gradient and hang on the node from now on.
    """
    node.edges = edges
    node.idxs = idxs
    node.hooks = None
    node.seq = sequence()
    for i in places:
        t = outs[i]
        t._edge = node
        t._idx = i
