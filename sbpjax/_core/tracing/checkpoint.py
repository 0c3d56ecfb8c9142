"""`checkpoint`: activation checkpointing: keep a function's inputs, and recompute its values in backward.

The random stream is put back to its former state, so dropout inside drops the same elements again.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import Tensor, restore, wrap_any
from sbpjax._core.tensor.nodes.node import FREED, Node, freed_error, record
from sbpjax._core.tensor.storage.payload import as_leaf, edge_of, edges_of, payload
from sbpjax._core.tensor.tape import engine


class CheckpointNode(Node):
    """The tape's node of a checkpointed function."""

    __slots__ = ("autocast", "count", "inputs", "places", "run", "state")

    autocast: Any
    count: int
    inputs: Any
    places: tuple
    run: Any
    state: Any

    label = "checkpoint_backward"

    @property
    def n_out(self) -> int:
        return self.count

    def backward(self, grads: list, create_graph: bool) -> tuple:
        if self.inputs is FREED:
            raise freed_error("checkpoint")
        inputs = list(self.inputs)
        for i, edge, idx in zip(self.places, self.edges, self.idxs, strict=False):
            array, layout = inputs[i]
            inputs[i] = restore(array, layout, edge, idx) if create_graph else as_leaf(wrap_any(array, layout))
        sources = [inputs[i] for i in self.places]
        arriving = [edge_of(x) for x in sources]
        arriving += list(zip(self.edges[len(sources) :], self.idxs[len(sources) :], strict=True))
        outs = self._recompute(inputs)
        roots = [(*edge_of(o), g) for o, g in zip(outs, grads, strict=True) if g is not None and o.requires_grad]
        capture = dict.fromkeys(arriving)
        engine.walk(roots, create_graph, create_graph, capture, others=True)
        return tuple(capture[key] for key in arriving)

    def _recompute(self, inputs: list) -> tuple:
        before = default_generator._seed, default_generator._counter, mode.grad, mode.autocast
        if self.state is not None:
            default_generator._seed, default_generator._counter = self.state
        mode.grad = True
        mode.autocast = None if self.autocast is None else self.autocast.fresh_copy()
        try:
            return _outs(self.run(inputs))
        finally:
            default_generator._seed, default_generator._counter, mode.grad, mode.autocast = before

    def release(self) -> None:
        self.inputs = FREED


def _outs(result) -> tuple:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def _parameters(function) -> list:
    """Return the parameters of a module, or of the module a bound method belongs to, that require grad."""
    owner = function if hasattr(function, "parameters") else getattr(function, "__self__", None)
    parameters = getattr(owner, "parameters", None)
    return [] if parameters is None else [p for p in parameters() if p.requires_grad]


def checkpoint(function, *args, use_reentrant: bool | None = None, preserve_rng_state: bool = True, **kwargs):
    """Run ``function(*args, **kwargs)``; its backward runs it again instead of keeping its intermediate values.

    Args:
        function: a function of tensors, whose parameters may also be closed over.
        args: its arguments; gradients flow to the tensors among them and to closed-over leaves.
        use_reentrant: accepted for PyTorch's spelling; there is one way here.
        preserve_rng_state: draw the same random numbers again.
        kwargs: passed on.

    Returns:
        The function's result: a tensor or a tuple of tensors.
    """
    state = (default_generator._seed, default_generator._counter) if preserve_rng_state else None
    if not mode.grad:
        return function(*args, **kwargs)
    tensors = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    places = tuple(i for i in tensors if args[i].requires_grad)
    mode.grad = False
    try:
        result = function(*args, **kwargs)
    finally:
        mode.grad = True
    node = CheckpointNode()
    node.run = lambda inputs: function(*inputs, **kwargs)
    node.state, node.autocast = state, mode.autocast
    node.inputs = [(payload(a), a.layout) if i in places else a for i, a in enumerate(args)]
    node.places = places
    owned = _parameters(function)
    outs = list(_outs(result))
    node.count = len(outs)
    hanging = []
    for i, out in enumerate(outs):
        if isinstance(out, Tensor) and (out.dtype.is_floating_point or out.dtype.is_complex):
            outs[i] = wrap_any(payload(out), out.layout)
            hanging.append(i)
    sources = [args[i] for i in places] + owned
    record(node, *edges_of(sources), outs, hanging)
    return tuple(outs) if isinstance(result, (tuple, list)) else outs[0]
