"""The tape: nodes that know how to turn the cotangents of an op's outputs into those of its inputs.

`y = x * w` records an `OpNode` with two edges: to the node that made ``x`` (or, for a leaf, to its `AccumulateGrad`)
and to that of ``w``. A tensor's `_edge` is its node, `_idx` says which of the node's outputs it is, and a tensor
without an edge needs no grad.

Every node has a sequence number; an op's inputs always have smaller ones, so descending order is a valid order of
backward.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from sbpjax.errors import AutogradError, message

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

    def release(self) -> None:
        """Drop what was saved for backward."""

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
    """What registering a hook returns; `remove` takes the hook away."""

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


def freed(name: str) -> AutogradError:
    """Return the error of a second walk over a node that keeps nothing any more."""
    return AutogradError(
        message(
            f"backward through {name}",
            "its saved tensors were freed by an earlier backward()",
            "a graph can be walked once, unless it is retained",
            "call the first backward with retain_graph=True",
        )
    )


class AccumulateGrad(Node):
    """The end of the tape at a leaf: adds what arrives to the leaf's ``.grad``."""

    __slots__ = ("post", "ref")

    post: Any

    label = "accumulate_grad"

    def __init__(self, tensor) -> None:
        self.ref = weakref.ref(tensor)
        self.edges = self.idxs = ()
        self.hooks = None
        self.post = None
        self.seq = -1

    @property
    def variable(self):
        """The leaf."""
        return self.ref()


def _tensors(arrays) -> tuple:
    wrap = dispatch.wrap if arrays.__class__ is tuple else dispatch.wrap_any  # a list is without data
    return tuple([wrap(a) for a in arrays])


class OpNode(Node):
    """A recorded op in recompute form: runs the cached vjp program of `sbpjax.tensor.op.Entry` on the saved inputs."""

    __slots__ = ("checks", "entry", "in_layouts", "layouts", "n_out", "saved")

    checks: Any
    entry: Any
    in_layouts: Any
    layouts: Any
    saved: Any

    def name(self) -> str:
        return f"{self.entry.op.name}_backward"

    def check(self) -> None:
        """Raise unless what was saved is still there and unchanged."""
        if self.saved is FREED:
            raise freed(self.name())
        checks = self.checks
        for k in range(0, len(checks), 2):
            t, saved = checks[k](), checks[k + 1]
            # a tensor that is gone cannot have been changed by its user
            now = saved if t is None else t._cell.version if t._cell is not None else t._ver
            if t is not None and now != saved:
                raise AutogradError(
                    message(
                        f"backward through {self.name()}",
                        f"a tensor it needs, {list(t.shape)}, was modified by an inplace operation: "
                        f"it is at version {now}, expected version {saved}",
                        "what backward needs must not change between the op and backward()",
                        "use the out-of-place op, or write to x.clone()",
                    )
                )

    def backward(self, grads: list, create_graph: bool) -> tuple:
        self.check()
        entry = self.entry
        if entry.n_out == 1:
            op, cotangents = entry.first, grads
        else:
            mask = tuple(i for i in entry.diff_outs if grads[i] is not None)
            if not mask:
                return (None,) * len(self.edges)
            op, cotangents = entry.variant(mask), [grads[i] for i in mask]
        if create_graph:
            return self._recorded(op, cotangents)
        layouts = self.layouts
        if layouts is None:
            if entry.passed is not None and op is entry.first:
                return self._passed(entry, cotangents)
            arrays = dispatch.backward_call(op, self.saved, cotangents)
            return _tensors(arrays)
        return on_placement.backward_global(op, self.saved, layouts, cotangents, self.in_layouts)

    def backward_onto(self, grads: list, places: tuple[int, ...], held: list) -> tuple:
        """Return `backward` of a local op of one output, with arrays added to the gradients at ``places``."""
        self.check()
        arrays = dispatch.backward_call(self.entry.adding(places), self.saved, grads, held)
        return _tensors(arrays)

    def _passed(self, entry, cotangents: list) -> tuple:
        """Hand on the cotangents that are gradients as they come, and compute the other gradients."""
        rest = iter(() if entry.rest is None else dispatch.backward_call(entry.rest, self.saved, cotangents))
        arrays = [next(rest) if k is None else dispatch.plain(cotangents[k])._array for k in entry.passed]
        return tuple([dispatch.wrap_any(a) for a in arrays])

    def _recorded(self, op, cotangents) -> tuple:
        """Run the backward as a recorded op: saved inputs come back as tensors on their old edges."""
        edge_of = dict(zip(self.entry.needs, zip(self.edges, self.idxs, strict=True), strict=True))
        layouts = self.layouts or (None,) * len(self.saved)
        inputs = [
            dispatch.restore(array, layout, *edge_of.get(i, (None, 0)))
            for i, array, layout in zip(self.entry.keep, self.saved, layouts, strict=True)
        ]
        outs = dispatch.run(op, (*inputs, *cotangents))
        outs = outs if isinstance(outs, tuple) else (outs,)
        if self.in_layouts is not None:
            outs = tuple(
                on_placement.localize(g) if lay is None else g for g, lay in zip(outs, self.in_layouts, strict=True)
            )
        return outs

    def release(self) -> None:
        if self.saved:
            self.saved = FREED
        self.checks = ()


class VjpNode(Node):
    """A recorded op inside a trace, in residual form: the closure that `jax.vjp` returned."""

    __slots__ = ("diff_outs", "entry", "inputs", "layouts", "n_out", "op", "scope", "vjp")

    diff_outs: Any
    entry: Any
    inputs: Any
    layouts: Any
    op: Any
    scope: Any
    vjp: Any

    def name(self) -> str:
        return f"{self.op.name}_backward"

    def backward(self, grads: list, create_graph: bool) -> tuple:
        if self.vjp is None:
            raise freed(self.name())
        if create_graph:
            return traced.double_backward(self, grads)
        return traced.backward(self, grads)

    def release(self) -> None:
        self.vjp = None
        self.inputs = None


# At the end, since they build on the classes above.
from sbpjax.tensor import dispatch, on_placement, traced  # noqa: E402
