"""`compile`: a function of tensors as one planned, compiled program.

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step = sbpjax.compile(step, state=(model, optimizer))

The first call with new shapes, dtypes or layouts traces the function, plans the whole program (forward, backward,
update) with the layouts of its inputs and state as pins, and compiles it; later calls run it. State is donated in
and written back in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import numpy as np

from sbpjax.errors import MixedTensorError, SbpjaxError, message
from sbpjax.sbp import Layout, broadcast, eager
from sbpjax.sbp.compile import compile_program
from sbpjax.tensor import Tensor
from sbpjax.tensor.dispatch import wrap_any
from sbpjax.tensor.generator import default_generator
from sbpjax.tensor.traced import TracedLayout

from .capture import Lifted, State
from .watch import Watch, check_arguments


def compile(fn: Callable | None = None, *, state=(), lowering: str = "spmd"):
    """Return ``fn`` as a function that runs as one compiled program.

    Args:
        fn: a function of tensors (nested lists, tuples, dicts of them) and static Python values.
        state: modules, optimizers and tensors that it changes in place.
        lowering: ``"spmd"`` (explicit collectives) or ``"gspmd"`` (sharding constraints, collectives left to XLA).

    Returns:
        A `Compiled`; call it as ``fn``.

    Example:
        >>> double = compile(lambda x: x * 2)
    """
    if fn is None:
        return functools.partial(compile, state=state, lowering=lowering)
    return Compiled(fn, state, lowering)


_KEY = jax.ShapeDtypeStruct((2,), np.uint32)  # the data of one key; every random op in the program folds its number in


class Compiled:
    """A function of tensors with its compiled programs, one per input signature."""

    def __init__(self, fn: Callable, state, lowering: str) -> None:
        self._fn = fn
        self._owners = state
        self._lowering = lowering
        self._programs: dict = {}
        functools.update_wrapper(self, fn)

    def __call__(self, *args, **kwargs):
        """Run the program for these arguments; trace and compile it first if they are of a new signature."""
        state, leaves, treedef, tensors = self._arguments(args, kwargs)
        program = self._program(state, leaves, treedef, tensors)
        results, new_state = program.run(state, [leaves[i] for i in tensors])
        state.write(*new_state)
        return results

    def plan(self, *args, **kwargs):
        """Return the plan of the program for these arguments, None for a program on one device; nothing runs."""
        return self._program(*self._arguments(args, kwargs)).plan

    def lower(self, *args, **kwargs):
        """Return the `jax.stages.Lowered` of the program for these arguments; nothing runs."""
        state, leaves, treedef, tensors = self._arguments(args, kwargs)
        program = self._program(state, leaves, treedef, tensors)
        return program.lower(state, [leaves[i] for i in tensors])

    def _arguments(self, args, kwargs):
        state = State(self._owners)
        leaves, treedef = jax.tree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, Tensor))
        tensors = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        return state, leaves, treedef, tensors

    def _program(self, state: State, leaves, treedef, tensors) -> Program:
        static = tuple((i, leaf) for i, leaf in enumerate(leaves) if not isinstance(leaf, Tensor))
        avals = tuple(
            (leaves[i]._layout, leaves[i].dtype, tuple(leaves[i].shape), leaves[i].requires_grad) for i in tensors
        )
        key = (treedef, static, avals, state.signature())
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = Program(self._fn, state, leaves, treedef, tensors, self._lowering)
        return found


class Program:
    """One traced, planned and compiled program.

    Attributes:
        plan: the layouts chosen, None on one device.
        placement: where it runs, None on one device.
    """

    def __init__(self, fn, state: State, leaves, treedef, tensors, lowering: str) -> None:
        arguments = [leaves[i] for i in tensors]
        layouts = state.layouts() + [t._layout for t in arguments]
        self.placement = _common_placement(fn, layouts)
        self._lifted = Lifted()
        examples = [
            _KEY,
            *(_example(a, lay) for a, lay in zip(state.arrays() + [t._array for t in arguments], layouts)),
        ]
        closed = self._trace(fn, state, leaves, treedef, tensors, examples)
        if not self._lifted.complete:
            closed = self._trace(fn, state, leaves, treedef, tensors, examples)
        layouts = [None, *layouts, *(t._layout for t in self._lifted.tensors)]
        self.placement = _common_placement(fn, layouts)
        count = len(state.tensors)
        state_layouts = state.layouts()[:count]
        donate = tuple(range(1, 1 + count))
        if self.placement is None:
            self.plan = None
            call = jax.extend.core.jaxpr_as_fun(closed)
            self._call = jax.jit(call, donate_argnums=donate)
            self._out_layouts = [None] * len(closed.out_avals)
            return
        everywhere = (broadcast,) * len(self.placement.hierarchy)
        layouts = [
            Layout(self.placement, everywhere, aval.shape, aval.dtype) if lay is None else lay
            for lay, aval in zip(layouts, closed.in_avals, strict=True)
        ]
        pins = [everywhere if lay is None else lay.sbp for lay in state_layouts]
        pins += [None] * (len(closed.out_avals) - count)
        compiled = compile_program(closed, self.placement, layouts, pins, donate, lowering=lowering)
        self.plan, self._call, self._out_layouts = compiled.plan, compiled.call, compiled.out_layouts

    def _trace(self, fn, state: State, leaves, treedef, tensors, examples):
        count = len(state.tensors) + len(state.options)
        asked = f"compile({getattr(fn, '__name__', type(fn).__name__)})"
        watch = Watch(state.tensors, state.optimizers)
        results: list[Tensor] = []

        def pure(seed, *inputs):
            rebuilt = list(leaves)
            for i, tracer in zip(tensors, inputs[count:], strict=False):
                rebuilt[i] = _tracer_tensor(leaves[i], tracer)
            args, kwargs = jax.tree.unflatten(treedef, rebuilt)
            key = jax.random.wrap_key_data(seed)
            with (
                watch.watching(),
                state.traced(inputs[:count]),
                self._lifted.collecting(inputs[count + len(tensors) :]),
                default_generator.under_trace(key) as generator,
            ):
                result = fn(*args, **kwargs)
                check_arguments(asked, [rebuilt[i] for i in tensors], inputs[count:])
                self._is_random = generator._counter > 0
                after = [t._fresh()._array for t in state.tensors]
                outs, self._out_tree = jax.tree.flatten(result, is_leaf=lambda x: isinstance(x, Tensor))
                self._static_outs = [None if isinstance(o, Tensor) else (o,) for o in outs]
                found = [o for o in outs if isinstance(o, Tensor)]
                self._global_outs = [o._layout is not None for o in found]
                results.extend(found)
                return (*after, *(o._fresh()._array for o in found))

        extra = [jax.ShapeDtypeStruct(t._layout.shape, t._layout.dtype) for t in self._lifted.tensors]
        try:
            closed = jax.make_jaxpr(pure)(*examples, *extra)
        except SbpjaxError as error:
            error.__notes__ = []  # what JAX says about its own frames helps no user
            raise error from None
        watch.check(asked, results)
        return closed

    def _inputs(self, state: State, arguments) -> list:
        seed = jax.random.key_data(default_generator.key()) if self._is_random else np.zeros(_KEY.shape, _KEY.dtype)
        arguments = [*arguments, *self._lifted.tensors]
        arrays = [seed, *state.arrays(), *(t._fresh()._array for t in arguments)]
        if self.placement is None:
            return arrays
        replicated = jax.sharding.NamedSharding(self.placement.mesh, jax.sharding.PartitionSpec())
        layouts = [None, *state.layouts(), *(t._layout for t in arguments)]
        return [
            jax.device_put(a, replicated) if lay is None and isinstance(a, jax.Array) else a
            for a, lay in zip(arrays, layouts, strict=True)
        ]

    def lower(self, state: State, arguments):
        """Return the lowered program for these inputs."""
        return self._call.lower(*self._inputs(state, arguments))

    def run(self, state: State, arguments):
        """Run the program; return the function's result and the new state's arrays and layouts."""
        count = len(state.tensors)
        arrays = self._call(*self._inputs(state, arguments))
        new_state = (arrays[:count], self._out_layouts[:count])
        produced = iter(zip(arrays[count:], self._out_layouts[count:], self._global_outs, strict=True))
        outs = []
        for static in self._static_outs:
            if static is not None:
                outs.append(static[0])
                continue
            array, layout, is_global = next(produced)
            if layout is not None and not is_global:
                array, layout = eager.to_logical(array, layout), None
            outs.append(wrap_any(array, layout))
        return jax.tree.unflatten(self._out_tree, outs), new_state


def _example(array, layout: Layout | None):
    if layout is not None:
        return jax.ShapeDtypeStruct(layout.shape, layout.dtype)
    return jax.ShapeDtypeStruct(array.shape, array.dtype) if isinstance(array, (jax.Array, np.ndarray)) else array


def _tracer_tensor(like: Tensor, tracer) -> Tensor:
    layout = None if like._layout is None else TracedLayout(like._layout.placement)
    tensor = wrap_any(tracer, layout)
    return tensor.requires_grad_() if like.requires_grad else tensor


def _common_placement(fn, layouts):
    placements = list(dict.fromkeys(lay.placement for lay in layouts if lay is not None))
    if len(placements) > 1:
        raise MixedTensorError(
            message(
                f"compile({getattr(fn, '__name__', 'function')})",
                f"tensors on {placements[0]!r} and on {placements[1]!r}",
                "one compiled program runs on one placement",
                f"move the inputs and the state to one: x.to_global({placements[0]!r}, sbp=...)",
            )
        )
    return placements[0] if placements else None
