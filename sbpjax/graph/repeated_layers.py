"""Repeated layers: equal layers of a model are traced once; checkpointed layers.

A model of 48 layers runs the Python of one layer 48 times while it is traced. Layers that are equal but for the values
of their tensors (same class, same plain attributes, same shapes) are found before the trace; the first one is traced
into two small programs (`sbpjax.graph.program.forward_backward`), and every other one is a call of them. So a trace
costs only the distinct layers, and the program itself shows its repeated parts.

A layer is *plain*, and may be traced once, if all that it does is compute: no hooks but those marked ``only_computes``
too, no attribute set by ``forward``, no tensor among its arguments written in place, no tensor of its surroundings read
or written but its own, its arguments, and those of modules among these (a cache of keys and values). Everything else
runs as it always did. Random ops draw the numbers that they would draw without blocks.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.jax_private import current_name_stack, set_name_stack
from sbpjax._core.programs.casts import Cast, without_casts
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.amp.casting import use_fresh_cache
from sbpjax._core.tensor.creation.generator import Generator, default_generator
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.dispatch.op_calls import inline_calls
from sbpjax._core.tensor.dispatch.traced import as_traced, is_per_process, logical_value, note_per_process, unpin_layout
from sbpjax._core.tensor.handle.dtype import as_dtype as dtype_of
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import restore, wrap_any
from sbpjax._core.tensor.nodes.node import Node, freed_error, record
from sbpjax._core.tensor.storage.payload import (
    Snapshot,
    as_leaf,
    edge_of,
    edges_of,
    payload,
    put,
    refresh_tensor,
    substitute_payload,
)
from sbpjax._core.tensor.storage.storage import base_of
from sbpjax._core.tensor.tape.backward import grad
from sbpjax._core.tensor.tape.row_grad import RowGrad
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.escaped_tensors import EscapedTensors
from sbpjax._core.tracing.signature import Call
from sbpjax.nn.module import Module
from sbpjax.sbp import Layout
from sbpjax.sbp.boxing_marker import to_sbp

from .module_proxy import origin_of
from .program.forward_backward import ForwardBackward, cotangent_p, split

log = logging.getLogger("sbpjax.graph")

_TABLES = ("_parameters", "_buffers", "_modules")
_LEAST_REPEATS = 2
_PLAIN = (type(None), bool, int, float, complex, str, bytes)


class NotRepeatableError(Exception):
    """A block does more than compute; the message has the reason."""


def device_type(tensors: Sequence[Tensor]) -> str:
    """Return the kind of devices, present or not, that a program on these tensors runs on: ``"cpu"``, ``"cuda"``..."""
    types = {t.layout.placement.type for t in tensors if t.layout is not None}
    if not types:
        return {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
    return types.pop() if len(types) == 1 else "several"


class Blocks:
    """The blocks of one trace.

    Args:
        modules: the modules of the traced state.
        policies: id of a module → the values that its checkpoint saves, see `sbpjax.graph.program.forward_backward`.
        reuse: trace equal layers once; off, only checkpointed modules are blocks.
        gradients: id of a parameter → the layout in which its gradient is wanted.
        shares_casts: keep the casts of weights from forward to backward; off where weights are gathered per use.
    """

    def __init__(
        self,
        modules: Sequence,
        policies: dict[int, Any] | None = None,
        reuse: bool = True,
        gradients: dict[int, Layout] | None = None,
        shares_casts: bool = True,
    ) -> None:
        self._shares_casts = shares_casts
        self._gradients = gradients or {}
        self._policies = policies or {}
        self._forms = {id(m): form_of(m) for m in _find_repeated(modules)} if reuse else {}
        for m in modules:
            if id(m) in self._policies:
                # A checkpointed module is a block even where no other layer is equal to it.
                self._forms.setdefault(id(m), form_of(m) or ("alone", id(m)))
        self._forms = {k: f for k, f in self._forms.items() if f is not None}
        self._found: dict = {}
        self._select_first_function: dict = {}
        # Takes the calls of modules while a block is traced.
        self.inside: Any = None
        # Receives every call of a block: the module that was traced, and the one called.
        self.follow: Any = None

    def forget(self) -> None:
        """Forget the traced blocks: they may hold values of a trace that is over."""
        self._found.clear()
        self._select_first_function.clear()

    def call(self, module, args: tuple, kwargs: dict):
        """Run a module as a block, or directly if it is none."""
        form = None if mode.inline else self._forms.get(id(module))
        block = None
        if form is not None:
            call = _Call(module, args, kwargs)
            call.wanted = [self._gradients.get(id(t)) for t in call.owned]
            key = (form, self._policies.get(id(module), "all"), *call.key(), *call.wanted)
            if key not in self._found:
                self._found[key] = self._trace(call, module)
                self._select_first_function[key] = module
            block = self._found[key]
            if block is not None and self.follow is not None:
                self.follow(self._select_first_function[key], module)
        if block is None:
            return module._call_impl(args, kwargs)
        return block.run(call)

    def _trace(self, call: _Call, module) -> _Block | None:
        before, mode.blocks = mode.blocks, self.inside
        kept = EscapedTensors(module.modules())
        try:
            return _Block(call, self._policies.get(id(module)), self._shares_casts)
        except Exception as why:  # an exception of a user's module is raised again where it runs directly
            log.info("%s is not traced as a block: %s", type(module).__name__, why)
            kept.restore()  # its stored values belong to a trace that is over
            return None
        finally:
            mode.blocks = before


def _find_repeated(modules: Sequence) -> list:
    """Return the modules that have an equal sibling, outermost ones only."""
    found, inner = [], set()
    for parent in modules:
        if id(parent) in inner:
            inner.update(id(m) for m in parent.modules())
            continue
        children = [(m, form_of(m)) for m in parent.children()]
        count = Counter(f for _, f in children if f is not None)
        for m, f in children:
            if f is not None and count[f] >= _LEAST_REPEATS and next(iter(m.parameters()), None) is not None:
                found.append(m)
                # Outermost ones only: a layer's own equal heads are traced within it.
                inner.update(id(x) for x in m.modules())
    return found


def form_of(module) -> tuple | None:
    """Return the comparison key of equal modules, None if the module cannot be compared."""
    try:
        return _form(module)
    except NotRepeatableError:
        return None


def _form(module) -> tuple:
    tensors = [
        (kind, name, None if t is None else (tuple(t.shape), t.dtype, _place(t.layout), t.requires_grad))
        for kind in ("_parameters", "_buffers")
        for name, t in getattr(module, kind).items()
    ]
    rest = []
    for name, value in module.__dict__.items():
        if name.endswith("_hooks"):
            if value:
                rest.append((name, tuple(_hashable_hook(h) for h in value.values())))
        elif name not in _TABLES:
            rest.append((name, _hashable_value(value)))
    children = tuple((name, None if m is None else _form(m)) for name, m in module._modules.items())
    return type(module), tuple(tensors), tuple(rest), children


def _hashable_hook(entry):
    """Return a hook that only computes, as a hashable that is equal for equal ones."""
    hook, *options = entry if isinstance(entry, tuple) else (entry,)
    if not getattr(hook, "only_computes", False):
        raise NotRepeatableError("it has hooks")
    return hook, *options


def _hashable_value(value):
    """Return a plain attribute as a hashable that is equal for equal attributes."""
    if isinstance(value, _PLAIN):
        return type(value), value
    if isinstance(value, (list, tuple)):
        return type(value), tuple(_hashable_value(v) for v in value)
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(_hashable_value(v) for v in value)
    if isinstance(value, dict):
        return type(value), tuple((_hashable_value(k), _hashable_value(v)) for k, v in value.items())
    if isinstance(value, Generator):
        raise NotRepeatableError("it has a generator of its own")
    if isinstance(value, Tensor):
        raise NotRepeatableError("it has a tensor that is neither parameter nor buffer")
    # Equal by identity alone: two layers may share a config object, but its contents are not compared.
    return "object", id(value)


def _place(layout):
    """Return the part of a tensor's layout that a module can see while it is traced."""
    return None if layout is None else (layout.placement, layout.pinned if layout.shape is None else layout.codes)


class _Call(Call):
    """One call of a module: its tensors, and everything else its trace depends on."""

    def __init__(self, module, args: tuple, kwargs: dict) -> None:
        super().__init__(args, kwargs)
        self.module = module
        self.arguments = [refresh_tensor(t) for t in self.tensors]
        # A module among the arguments is handed over with its tensors, if it can be compared.
        self.forms = self.forms_of_leaves()
        modules = [module, *(origin_of(leaf) for leaf in self.leaves if id(leaf) in self.forms)]
        self.owned = [refresh_tensor(t) for m in modules for t in (*m.parameters(), *m.buffers())]
        # Of each owned tensor the layout in which its gradient is wanted.
        self.wanted: list[Layout | None] = []

    def forms_of_leaves(self) -> dict[int, tuple]:
        """Return the forms of the modules among the leaves, by id."""
        forms = [(id(leaf), form_of(origin_of(leaf))) for leaf in self.leaves if isinstance(leaf, Module)]
        return {number: form for number, form in forms if form is not None}

    def key(self) -> tuple:
        """Return a hashable that is equal for calls that one trace serves."""
        static = tuple(self.forms.get(id(x)) or _hashable_leaf(x) for x in self.leaves if not isinstance(x, Tensor))
        tensors = [*self.arguments, *self.owned]
        # Which of the tensors are the same one is part of the key: a gradient of ``f(w, w)`` is a sum, that of ``f(w,
        # v)`` is two.
        number: dict[int, int] = {}
        same = tuple(number.setdefault(id(t), len(number)) for t in tensors)
        described = tuple((tuple(t.shape), t.dtype, _place(t.layout), t.requires_grad) for t in tensors)
        return self.structure, static, same, described, mode.grad, mode.autocast and mode.autocast.key


def _hashable_leaf(leaf):
    try:
        hash(leaf)
    except TypeError:
        return "object", id(leaf)
    return type(leaf), leaf


class _Block:
    """A traced module: its two programs, and how to put their results back.

    ``shares_casts``: keep the casts of weights from forward to backward, unless there is a policy.
    """

    def __init__(self, call: _Call, policy, shares_casts: bool = True) -> None:
        before = form_of(call.module)
        inputs = [*call.arguments, *call.owned]
        shapes = [jax.ShapeDtypeStruct(tuple(t.shape), t.dtype.np) for t in inputs]
        stream = default_generator.trace
        self._random = () if stream is None else (jax.typeof(stream.key), jax.ShapeDtypeStruct((), np.uint32))
        closed = inline_calls(jax.make_jaxpr(lambda *arrays: self._trace_block(call, arrays))(*shapes, *self._random))
        if before is None or form_of(call.module) != before or call.forms_of_leaves() != call.forms:
            raise NotRepeatableError("forward changes attributes of a module")
        # Called for a twin, the block would read the tensor of the first one's surroundings.
        if any(isinstance(c, jax.core.Tracer) for c in closed.consts):
            raise NotRepeatableError("it reads a tensor of the surrounding trace")
        kept = self._outputs + len(self._written)
        name = type(call.module).__name__
        # For a backward that is itself recorded: computed from the inputs alone, so that all derivatives are there.
        self._again = functools.cache(lambda: op_of(split(name, closed, kept, "nothing").backward))
        self._casts: list[Cast] = []
        # A weight is cast once per step, not once in each half of each call. A checkpointed block would save the cast,
        # whole where it is gathered, for its backward.
        if mode.autocast is not None and policy is None and shares_casts:
            count = len(call.arguments)
            halved, self._casts = without_casts(closed, range(count, count + len(call.owned)))
        else:
            halved = closed
        self._halves: ForwardBackward = split(
            name, halved, kept, policy, device_type([*call.arguments, *call.owned]) != "cpu"
        )

    def _trace_block(self, call: _Call, arrays) -> tuple:
        """Run the module on tracers, and its backward on stand-ins for the cotangents."""
        count = len(call.arguments)
        arguments, owned = arrays[:count], arrays[count : count + len(call.owned)]
        handles = [wrap_any(t, as_traced(o.layout)) for o, t in zip(call.arguments, arguments, strict=True)]
        for handle, outer in zip(handles, call.arguments, strict=True):
            if outer.requires_grad:
                as_leaf(handle)
            if is_per_process(outer):
                note_per_process(handle)
        args, kwargs = call.rebuilt(handles)
        random = arrays[count + len(call.owned) :]
        with (
            _hold_tracers(call.owned, owned),
            _undo_foreign_writes([*handles, *call.owned], arrays),
            _draw_from_traced_key(random),
            use_fresh_cache(),
        ):
            result = call.module._call_impl(args, kwargs)
            self._draws = default_generator._counter
            if any(payload(h) is not a for h, a in zip(handles, arguments, strict=True)):
                raise NotRepeatableError("it writes an argument in place")
            tensors, self._results = tree.split_tensors(result)
            self._outputs = len(tensors)
            self._layouts = [as_traced(refresh_tensor(o).layout) for o in tensors]
            self._written = [i for i, (t, a) in enumerate(zip(call.owned, owned)) if payload(t) is not a]
            if any(call.owned[i].requires_grad for i in self._written):
                raise NotRepeatableError("it writes a parameter")
            values = [logical_value(o) for o in tensors] + [logical_value(call.owned[i]) for i in self._written]
            self._recorded = [i for i, o in enumerate(tensors) if o.requires_grad]
            return (*values, *self._gradients(tensors, [*handles, *call.owned], [None] * count + call.wanted))

    def _gradients(self, outputs, inputs, wanted_in) -> list:
        self._sources = []
        differentiable = [outputs[i] for i in self._recorded]
        if not differentiable:
            return []
        cotangents = [
            wrap_any(cotangent_p.bind(shape=tuple(o.shape), dtype=np.dtype(o.dtype.np)), unpin_layout(o.layout))
            for o in differentiable
        ]
        wanted = [(i, t) for i, t in enumerate(inputs) if t.requires_grad]
        found = grad(differentiable, [t for _, t in wanted], cotangents, allow_unused=True)
        grads = {i: g for (i, _), g in zip(wanted, found, strict=True) if g is not None}
        if any(g.__class__ is RowGrad for g in grads.values()):
            raise NotRepeatableError("the gradient of its table is one of rows")
        self._sources = list(grads)
        return [_to_layout(logical_value(g).astype(inputs[i].dtype.np), wanted_in[i]) for i, g in grads.items()]

    def run(self, call: _Call):
        """Return the module's result for a call of the same key."""
        inputs = [*call.arguments, *call.owned]
        arrays = [logical_value(t) for t in inputs]
        stream = default_generator.trace
        if self._random and stream is not None:
            arrays += [stream.key, np.uint32(stream.base + stream.drawn)]
        arrays += [logical_value(mode.autocast.cast(inputs[c.place], dtype_of(c.dtype))) for c in self._casts]
        results = list(self._halves.forward(*arrays))
        # A call draws as many numbers as the module's own Python would, so that random values do not depend on blocks.
        default_generator._counter += self._draws
        first, written = results[: self._outputs], results[self._outputs : self._halves.outputs]
        outs = [wrap_any(a, lay) for a, lay in zip(first, self._layouts, strict=True)]
        if self._recorded:
            self._record(outs, inputs, arrays, results[self._halves.outputs :])
        for i, array in zip(self._written, written, strict=True):
            put(call.owned[i], array, unpin_layout(call.owned[i].layout))
        return self._results.fill_places(outs)

    def _record(self, outs, inputs, arrays, saved) -> None:
        node = BlockNode()
        node.run, node.values = self._halves.backward, (*arrays, *saved)
        held = [restore(a, as_traced(t.layout), *edge_of(t)) for a, t in zip(arrays, inputs)]
        node.again, node.inputs = self._again, (*held, *arrays[len(held) : len(held) + len(self._random)])
        node.count, node.scope = len(self._recorded), current_name_stack()
        node.shapes = [(tuple(outs[i].shape), outs[i].dtype.np) for i in self._recorded]
        sources = [inputs[i] for i in self._sources]
        node.layouts = [unpin_layout(t.layout) for t in sources]
        record(node, *edges_of(sources), [outs[i] for i in self._recorded], range(node.count))


def _to_layout(array, layout: Layout | None):
    return array if layout is None else to_sbp(array, layout.placement, layout.sbp)


class BlockNode(Node):
    """The tape's node of a block: its backward is the block's second program."""

    __slots__ = ("again", "count", "inputs", "layouts", "run", "scope", "shapes", "values")

    again: Any
    count: int
    inputs: Any
    layouts: Any
    run: Any
    scope: Any
    shapes: Any
    values: Any

    label = "block_backward"

    @property
    def n_out(self) -> int:
        return self.count

    def backward(self, grads: list, create_graph: bool) -> tuple:
        if self.values is None:
            raise freed_error(self.name())
        if create_graph:
            return self._record_backward(grads)
        cotangents = [
            jnp.zeros(shape, dtype) if g is None else logical_value(g).astype(dtype)
            for g, (shape, dtype) in zip(grads, self.shapes, strict=True)
        ]
        with set_name_stack(self.scope):
            results = self.run(*self.values, *cotangents)
        return tuple(wrap_any(g, lay) for g, lay in zip(results, self.layouts, strict=True))

    def _record_backward(self, grads: list) -> tuple:
        cotangents = [
            wrap_any(jnp.zeros(shape, dtype), unpin_layout(self.inputs[0].layout)) if g is None else g
            for g, (shape, dtype) in zip(grads, self.shapes, strict=True)
        ]
        outs = dispatch.run(self.again(), (*self.inputs, *cotangents))
        return outs if isinstance(outs, tuple) else (outs,)

    def release(self) -> None:
        self.values = self.inputs = None


@contextlib.contextmanager
def _hold_tracers(tensors, tracers):
    """Make tensors leaves over tracers within the block."""
    saved = [Snapshot(t) for t in tensors]
    # The parameters of the block hold tracers here, put there by us: not a write of the user that a trace must refuse.
    touch, mode.touch = mode.touch, None
    try:
        for t, tracer in zip(tensors, tracers, strict=True):
            given = is_per_process(t)
            substitute_payload(t, tracer, as_traced(t.layout), as_new=True)
            if given:
                note_per_process(t)
        yield
    finally:
        mode.touch = touch
        for t, before in zip(tensors, saved, strict=True):
            before.put_back(t)


@contextlib.contextmanager
def _undo_foreign_writes(own, tracers):
    """Undo writes to other tensors of the surrounding trace, and refuse a block that has done any."""
    free, around = set(map(id, own)), mode.touch
    inner = {tracer._trace for tracer in tracers}
    written: dict[int, tuple[Any, Snapshot]] = {}

    def touch(x) -> None:
        if id(x) in free or id(x) in written:
            return
        array = Snapshot(x, weakly=True).array if isinstance(x, Tensor) else None
        if not isinstance(array, jax.core.Tracer):
            if around is not None:
                around(x)
        elif array._trace not in inner:
            written[id(x)] = x, Snapshot(x, weakly=True)
            base = base_of(x)
            if base is not None:
                touch(base)

    mode.touch = touch
    try:
        yield
    finally:
        mode.touch = around
        for x, saved in written.values():
            saved.put_back(x)
    if written:
        raise NotRepeatableError("it writes a tensor of its surroundings")


@contextlib.contextmanager
def _draw_from_traced_key(random):
    """Draw from a traced key, counting from a traced number, within the block."""
    if not random:
        before = default_generator._counter
        try:
            yield
        finally:
            default_generator._counter = before
        return
    with default_generator.under_trace(*random):
        yield
