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
from collections.abc import Callable, Iterable, Sequence

import jax

from sbpjax._core.compiler import conversions
from sbpjax._core.jax_private import ClosedJaxpr, Literal, Var, jaxpr_as_fun
from sbpjax._core.programs.normalise import bind, normalise, run_scan_with_body, scan_counts
from sbpjax._core.programs.rules.table import jointly_legal, strategies_of
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.storage.payload import payload, put
from sbpjax.sbp import Layout
from sbpjax.sbp.algebra import B, shift_splits
from sbpjax.sbp.boxing_marker import to_sbp_p
from sbpjax.sbp.layout import layout_of

from .forward_backward import COPIES

# Equations that make stacks of parts of stacks.
_PIECES = {"slice", "concatenate"}


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
                _convert_layout(t, layout)

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


def _convert_layout(t: Tensor, like: Layout) -> None:
    """Convert a tensor of state to a layout in place, for any dtype."""
    wanted = layout_of(like.placement, like.codes, t.layout.shape, t.layout.dtype)
    if t.layout is not wanted:
        array, layout = conversions.convert(payload(t), t.layout, wanted.placement, wanted.sbp)
        put(t, array, layout)


def gather_per_use(closed: ClosedJaxpr, rests: dict[int, Layout], slices: int | None = None) -> ClosedJaxpr:
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


class _StoredDivided:
    """A value that is stored divided: an input, or made of such inputs by equations that move elements.

    ``layout``: its layout while nothing is gathered; None if such an equation has no strategy without a gather.
    """

    def __init__(self, layout: Layout | None, leaf=None, eqn=None, operands: Sequence[_StoredDivided] = ()) -> None:
        self.layout = layout
        self.leaf = leaf
        self._eqn = eqn
        self._operands = operands
        self._copies: dict[int | str, jax.Array] = {}

    def value(self, stretch: int | None):
        """Return a copy for one reader, or for those of a stretch of the program."""
        if self._eqn is not None:
            return bind(self._eqn, [x.value(stretch) for x in self._operands])[0]
        # Without the barrier XLA sees equal gathers of one value and makes one, held from the first reader to the
        # last. Pinned as it is stored, or the planner would move one gather before all barriers.
        return self._cached(stretch, lambda: _pin_layout(jax.lax.optimization_barrier(self.leaf), self.layout))

    def divided_value(self):
        """Return the divided value, for a loop that gathers a part of it in every iteration."""
        if self._eqn is None:
            return self.leaf
        return self._cached(
            "divided", lambda: _pin_layout(bind(self._eqn, [x.divided_value() for x in self._operands])[0], self.layout)
        )

    def _cached(self, key, make: Callable):
        if key is None:
            return make()
        if key not in self._copies:
            self._copies[key] = make()
        return self._copies[key]


def _derive_stored(eqn, operands: Sequence) -> _StoredDivided | None:
    """Return the stored value that an equation makes of stored ones alone, None if it is a reader.

    A cast or a transpose of a stored parameter is not a reader: done before the gather once per use, it moves fewer
    bytes, and keeps no whole copy. Nor is a part of a stack, where no rank needs another's part: the stack of a loop
    over all layers is a part of it in a loop over all but the first.
    """
    if not all(isinstance(x, _StoredDivided) for x in operands):
        return None
    copies = eqn.primitive.name in COPIES and len(operands) == 1
    if not copies and eqn.primitive.name not in _PIECES:
        return None
    layout = _layout_after(eqn, [x.layout for x in operands])
    return _StoredDivided(layout, eqn=eqn, operands=operands) if copies or layout is not None else None


def _layout_after(eqn, layouts: Sequence[Layout | None]) -> Layout | None:
    """Return the layout of an equation's result where each rank works on its own parts, None if it cannot."""
    if None in layouts or len({layout.placement for layout in layouts}) > 1:
        return None
    placement = layouts[0].placement
    chosen = []
    for axis, size in enumerate(placement.hierarchy):
        ins = tuple(layout.codes[axis] for layout in layouts)
        found = [s for s in strategies_of(eqn, size, axis) if s.ins == ins and not s.hidden]
        if not found:
            return None
        chosen.append(found[0])
    if not jointly_legal(eqn, tuple(chosen), placement.hierarchy):
        return None
    (out,) = eqn.outvars
    return layout_of(placement, tuple(s.outs[0] for s in chosen), out.aval.shape, out.aval.dtype)


def _pin_layout(x, layout: Layout):
    return to_sbp_p.bind(x, placement=layout.placement, codes=layout.codes, grad_codes=None)


def _run(closed: ClosedJaxpr, arrays, rests: dict[int, Layout], shared: set[int]) -> list:
    program = normalise(closed)
    env: dict = dict(program.consts)
    for i, (v, x) in enumerate(zip(program.invars, arrays, strict=True)):
        env[v] = _pin_layout(x, rests[i]) if i in shared else _StoredDivided(rests[i], x) if i in rests else x
    resting = {program.invars[i] for i in rests if i not in shared}
    loops = [i for i, e in enumerate(program.eqns) if e.primitive.name == "scan" and not resting.isdisjoint(_reads(e))]
    for i, eqn in enumerate(program.eqns):
        held = [v.val if isinstance(v, Literal) else env[v] for v in eqn.invars]
        # A stretch is the part between two loops over layers, such as the head's forward and backward.
        stretch = sum(loop < i for loop in loops) if loops else None
        if not any(isinstance(x, _StoredDivided) for x in held):
            env.update(zip(eqn.outvars, bind(eqn, held), strict=True))
        elif (moved := _derive_stored(eqn, held)) is not None:
            env[eqn.outvars[0]] = moved
        elif eqn.primitive.name == "scan":
            env.update(zip(eqn.outvars, _scan(eqn, held, stretch), strict=True))
        else:
            values = [x.value(stretch) if isinstance(x, _StoredDivided) else x for x in held]
            env.update(zip(eqn.outvars, bind(eqn, values), strict=True))
    last = len(loops) if loops else None
    return [_result(v, env, last) for v in program.outvars]


def _reads(eqn) -> list[Var]:
    return [v for v in eqn.invars if isinstance(v, Var)]


def _result(v, env: dict, stretch: int | None):
    x = v.val if isinstance(v, Literal) else env[v]
    if not isinstance(x, _StoredDivided):
        return x
    return x.value(stretch) if x.leaf is None else x.leaf


def _scan(eqn, held: list, stretch: int | None) -> list:
    """Run a loop whose body gathers for itself the inputs stored divided outside."""
    params = eqn.params
    consts, carry = scan_counts(params)
    inside = {}
    operands = []
    for i, x in enumerate(held):
        # A carry is written in every iteration, and is whole.
        if isinstance(x, _StoredDivided) and x.layout is not None and not consts <= i < consts + carry:
            inside[i] = x.layout if i < consts else _slice(x.layout)
            operands.append(x.divided_value())
        else:
            operands.append(x.value(stretch) if isinstance(x, _StoredDivided) else x)
    inside = {i: layout for i, layout in inside.items() if layout is not None}
    first = consts + carry
    body = jaxpr_as_fun(gather_per_use(params["jaxpr"], inside, first))

    return run_scan_with_body(params, body, operands[:consts], operands[consts:first], operands[first:])


def _slice(layout: Layout) -> Layout | None:
    """Return the layout of a slice of a stack, None if the stack is split along its layers."""
    # Split along its layers an iteration's slice is on one rank, and there is nothing to gather.
    if 0 in layout.codes:
        return None
    return layout_of(layout.placement, shift_splits(layout.codes, -1), layout.shape[1:], layout.dtype)
