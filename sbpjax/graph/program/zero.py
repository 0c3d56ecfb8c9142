"""ZeRO: state that data parallelism would replicate is divided over the ranks.

    stage 1   optimizer state                       1/n per device
    stage 2   and the sums of gradients under accumulation, reduce-scattered in every iteration
    stage 3   and the parameters: they are stored divided, and gathered at every use

An axis of the placement is one of *data* if an argument of the graph is split on it. A tensor is divided on the data
axes on which it is broadcast, along a dim that no other axis splits and that divides evenly, the first such dim. The
rest is the planner's: the gradient is a partial sum, the update wants a part of it, so it is reduce-scattered; the
parameter goes back whole, so its parts are gathered.

A parameter that is divided on a data axis already, because the user laid it out so, is gathered at every use too. A
use is an iteration of a loop, a stretch between two loops, or in a program without loops an equation: the forward of a
layer gathers its weights, the backward does so again, and between the two a device holds its part. A copy gathered once
would move half as much, and be held from the first layer's forward to its backward.

A parameter keeps the sbp that the user gave it: in stage 3 it is stored (`_core.tensor.storage.offloaded`). A graph
without optimizers divides the parameters of its modules in stage 3, so that an evaluation gathers layer by layer, as
the training step does; it takes them as they are if a training graph left them in those parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import jax

from sbpjax._core.compiler import conversions
from sbpjax._core.jax_private import ClosedJaxpr, Literal, Var, jaxpr_as_fun
from sbpjax._core.programs.normalise import bind, normalise, scan_again, scan_counts
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.storage.payload import payload, put
from sbpjax.sbp import Layout
from sbpjax.sbp.algebra import B, shift_splits
from sbpjax.sbp.boxing_marker import to_sbp_p
from sbpjax.sbp.layout import layout_of

from .forward_backward import COPIES


def data_axes(arguments: Sequence[Tensor]) -> tuple[int, ...]:
    """Return the placement axes on which an argument is split; all axes if none is."""
    layouts = [t.layout for t in arguments if t.layout is not None]
    found = sorted({a for layout in layouts for a, c in enumerate(layout.codes) if c >= 0})
    return tuple(found)


def divide_layout(layout: Layout | None, axes: Sequence[int], min_size: int) -> Layout | None:
    """Return the layout of a tensor divided over data axes, None if it is on none of them.

    Args:
        layout: the user's layout; None for a local tensor.
        axes: the data axes; for none, every axis.
        min_size: tensors of fewer elements stay.
    """
    # Whoever holds a summand holds nothing that others have too.
    if layout is None or layout.partial_axes:
        return None
    sizes = layout.placement.hierarchy
    if math.prod(layout.shape) < min_size:
        return None
    codes = list(layout.codes)
    for axis in axes or range(len(sizes)):
        if codes[axis] != B or sizes[axis] == 1:
            continue
        # Evenly only: an uneven part would be padded on every rank, and the reduce-scatter that makes it too.
        free = [d for d, n in enumerate(layout.shape) if d not in codes and n % sizes[axis] == 0 and n]
        if free:
            codes[axis] = free[0]
    lies_so = any(layout.codes[a] >= 0 for a in axes)
    return layout.with_codes(tuple(codes)) if lies_so or tuple(codes) != layout.codes else None


class Zero:
    """ZeRO on the parameters of one graph.

    Args:
        stage: 1, 2 or 3.
        min_size: parameters of fewer elements are not divided.
        level: 1 gathers a parameter of stage 3 at every use; otherwise the planner chooses when, usually once.
        optimizers: the graph's optimizers.
        arguments: the arguments of the call.
        modules: the graph's modules, whose parameters count if there are no optimizers.
    """

    def __init__(
        self,
        stage: int,
        min_size: int,
        level: int,
        optimizers: Sequence,
        arguments: Sequence[Tensor],
        modules: Iterable = (),
    ) -> None:
        self.stage = stage
        self.per_use = stage == 3 and level == 1
        axes = data_axes(arguments)
        self._optimizers = optimizers
        parameters = [p for o in optimizers for group in o.param_groups for p in group["params"]]
        if not optimizers:
            parameters = [p for module in modules for p in module.parameters()]
        found = {id(p): divide_layout(p.layout, axes, min_size) for p in parameters}
        self._layouts = {key: layout for key, layout in found.items() if layout is not None}

    def divide_state(self) -> None:
        """Make the optimizer state of divided parameters in its parts, or bring it there, parameter by parameter.

        So never more than one parameter's state is whole on a device.
        """
        for optimizer in self._optimizers:
            optimizer.prepare(self._divide)

    def _divide(self, param: Tensor, tensors: dict[str, Tensor]) -> None:
        layout = self._layouts.get(id(param))
        if layout is None:
            return
        for t in tensors.values():
            # Step counts and factored moments have other shapes; they are small, and stay whole.
            if isinstance(t, Tensor) and tuple(t.shape) == tuple(param.shape) and t.layout is not None:
                _lay(t, layout)

    def stored_layouts(self, tensors: Sequence[Tensor]) -> dict[int, Layout]:
        """Return place → layout of the tensors of a state that are stored divided."""
        return self._from_stage(3, tensors)

    def sums(self, tensors: Sequence[Tensor]) -> dict[int, Layout]:
        """Return place → layout of the tensors whose gradients are summed in parts."""
        return self._from_stage(2, tensors)

    def _from_stage(self, stage: int, tensors: Sequence[Tensor]) -> dict[int, Layout]:
        if self.stage < stage:
            return {}
        return {i: self._layouts[id(t)] for i, t in enumerate(tensors) if id(t) in self._layouts}


def _lay(t: Tensor, like: Layout) -> None:
    """Convert a tensor of state to a layout in place, for any dtype."""
    wanted = layout_of(like.placement, like.codes, t.layout.shape, t.layout.dtype)
    if t.layout is not wanted:
        array, layout = conversions.convert(payload(t), t.layout, wanted.placement, wanted.sbp)
        put(t, array, layout)


def gathered_per_use(closed: ClosedJaxpr, rests: dict[int, Layout], slices: int | None = None) -> ClosedJaxpr:
    """Return a program in which each reader of an input gathers it for itself, and nothing keeps the whole.

    Planned as it is, a value is gathered once and kept for all its readers, from forward to backward. Here every reader
    has a copy of its own, behind a barrier that keeps XLA from merging them, pinned to the stored layout. In
    the body of a loop over layers the readers of a layer's weight share one copy, and so do those between two loops,
    such as the head's forward and backward.

    Args:
        closed: the program.
        rests: position of an input → its stored layout.
        slices: of a loop's body, the position from which on its inputs are slices of stacks.
    """
    if not rests:
        return closed
    shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    shared = set() if slices is None else {i for i in rests if i >= slices}
    return jax.make_jaxpr(lambda *xs: _run(closed, xs, rests, shared))(*shapes)


class _Rests:
    """A value that is a stored, divided input, seen through equations that move its elements."""

    def __init__(self, array, layout: Layout, moves: tuple = (), copies: dict | None = None) -> None:
        self.array, self.layout, self.moves = array, layout, moves
        self._copies: dict[int, jax.Array] = {} if copies is None else copies

    def move(self, eqn) -> _Rests:
        """Return the value after one more equation that moves its elements."""
        return _Rests(self.array, self.layout, (*self.moves, eqn), self._copies)

    def value(self, stretch: int | None):
        """Return a copy for one reader, or for those of a stretch of the program."""
        x = None if stretch is None else self._copies.get(stretch)
        if x is None:
            # Without the barrier XLA sees equal gathers of one value and makes one, held from the first reader to the
            # last. Pinned as it is stored, or the planner would move one gather before all barriers.
            x = _pin_layout(jax.lax.optimization_barrier(self.array), self.layout)
        if stretch is not None:
            self._copies[stretch] = x
        for eqn in self.moves:
            (x,) = bind(eqn, [x])
        return x


def _pin_layout(x, layout: Layout):
    return to_sbp_p.bind(x, placement=layout.placement, codes=layout.codes, grad_codes=None)


def _run(closed: ClosedJaxpr, arrays, rests: dict[int, Layout], shared: set[int]) -> list:
    program = normalise(closed)
    env: dict = dict(program.consts)
    for i, (v, x) in enumerate(zip(program.invars, arrays, strict=True)):
        env[v] = _pin_layout(x, rests[i]) if i in shared else _Rests(x, rests[i]) if i in rests else x
    resting = {program.invars[i] for i in rests if i not in shared}
    loops = [i for i, e in enumerate(program.eqns) if e.primitive.name == "scan" and not resting.isdisjoint(_reads(e))]
    for i, eqn in enumerate(program.eqns):
        held = [v.val if isinstance(v, Literal) else env[v] for v in eqn.invars]
        # A stretch is the part between two loops over layers, such as the head's forward and backward.
        stretch = sum(loop < i for loop in loops) if loops else None
        if not any(isinstance(x, _Rests) for x in held):
            env.update(zip(eqn.outvars, bind(eqn, held), strict=True))
        # A cast or a transpose of a stored parameter is not a reader: done before the gather once per use, it moves
        # fewer bytes, and keeps no whole copy.
        elif eqn.primitive.name in COPIES and len(held) == 1:
            env[eqn.outvars[0]] = held[0].move(eqn)
        elif eqn.primitive.name == "scan":
            env.update(zip(eqn.outvars, _scan(eqn, held, stretch), strict=True))
        else:
            values = [x.value(stretch) if isinstance(x, _Rests) else x for x in held]
            env.update(zip(eqn.outvars, bind(eqn, values), strict=True))
    last = len(loops) if loops else None
    return [_result(v, env, last) for v in program.outvars]


def _reads(eqn) -> list[Var]:
    return [v for v in eqn.invars if isinstance(v, Var)]


def _result(v, env: dict, stretch: int | None):
    x = v.val if isinstance(v, Literal) else env[v]
    if not isinstance(x, _Rests):
        return x
    return x.value(stretch) if x.moves else x.array


def _scan(eqn, held: list, stretch: int | None) -> list:
    """Run a loop whose body gathers for itself the inputs stored divided outside."""
    params = eqn.params
    consts, carry = scan_counts(params)
    inside = {}
    operands = []
    for i, x in enumerate(held):
        # A carry is written in every iteration, and is whole.
        if isinstance(x, _Rests) and not x.moves and not consts <= i < consts + carry:
            layout = x.layout
            inside[i] = layout if i < consts else _slice(layout)
            operands.append(x.array)
        else:
            operands.append(x.value(stretch) if isinstance(x, _Rests) else x)
    inside = {i: layout for i, layout in inside.items() if layout is not None}
    first = consts + carry
    body = jaxpr_as_fun(gathered_per_use(params["jaxpr"], inside, first))

    return scan_again(params, body, operands[:consts], operands[consts:first], operands[first:])


def _slice(layout: Layout) -> Layout | None:
    """Return the layout of a slice of a stack, None if the stack is split along its layers."""
    # Split along its layers an iteration's slice is on one rank, and there is nothing to gather.
    if 0 in layout.codes:
        return None
    return layout_of(layout.placement, shift_splits(layout.codes, -1), layout.shape[1:], layout.dtype)
