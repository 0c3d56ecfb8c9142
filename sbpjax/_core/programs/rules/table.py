"""Registry of sharding rules: the strategies (input layouts → output layouts) of an equation on a mesh axis.

For ``dot_general`` of ``(8, 12) · (12, 16)`` the strategies on one axis are ``S0,B→S0``, ``B,S1→S1``, ``S1,S0→P``,
``P,B→P``, ``B,P→P`` and ``B,B→B``. A rule covers one axis; an n-D strategy is a product of one per axis.

A rule is one or two functions registered by primitive name: `rule` registers the strategies, `local` computes the
equation on this rank's blocks (by default it binds the primitive again, which is right whenever no parameter names a
size). Primitives without a rule run with every input as broadcast; that is logged once per name.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp

from sbpjax._core.programs.normalise import bind
from sbpjax.sbp import even_split
from sbpjax.sbp.algebra import FREE
from sbpjax.sbp.algebra import B as B
from sbpjax.sbp.algebra import P as P
from sbpjax.sbp.conversion_steps import MeshPosition, interconnect_bytes
from sbpjax.sbp.layout import axes_of_dims, local_shape

log = logging.getLogger("sbpjax.rules")


@dataclass(frozen=True)
class Strategy:
    """Layouts of an equation's operands and of its outputs, on one mesh axis.

    Attributes:
        ins: a code per operand, literals included.
        outs: a code per output.
        hidden: outputs whose local result ends in an all-reduce of its own (max over a split dim).
        rigid_ins: operands whose split dims must divide evenly over all axes that split them.
        rigid_outs: the same of outputs.
        divided: whether each rank does only its share of the work.
        alone: operands whose dim no other axis may split too.
        name: the name by which an equation requests it: its parameter ``across`` has one for every axis, or "".
        groups: the factors of the split dim of operand 0; they too must divide evenly over all axes that split it.
    """

    ins: tuple[int, ...]
    outs: tuple[int, ...]
    hidden: tuple[int, ...] = ()
    rigid_ins: tuple[int, ...] = ()
    rigid_outs: tuple[int, ...] = ()
    divided: bool = True
    groups: int = 0
    alone: tuple[int, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class Moved:
    """The communication inside an equation, on one axis.

    Attributes:
        kind: ``psum``, or ``ppermute``: to one other rank.
        axis: the mesh axis.
        bytes: the bytes that one device receives.
        launches: the number of collectives.
    """

    kind: str
    axis: int
    bytes: int
    launches: int = 1


_STRATEGIES: dict[str, Callable] = {}
_LOCAL: dict[str, Callable] = {}
_MOVED: dict[str, Callable] = {}
_WHOLE: set[str] = set()
_ANNOUNCED: set[str] = set()


def rule(*primitives: str):
    """Register ``f(eqn, size) -> list[Strategy]`` for primitives; the all-B strategy is added by the table."""

    def register(function):
        for name in primitives:
            _STRATEGIES[name] = function
        return function

    return register


def local(*primitives: str, whole: bool = False):
    """Register ``f(ctx, *blocks) -> block or blocks`` for primitives; `whole`: also where nothing is divided."""

    def register(function):
        for name in primitives:
            _LOCAL[name] = function
        _WHOLE.update(primitives if whole else ())
        return function

    return register


def transfers(*primitives: str):
    """Register ``f(eqn, chosen, sizes) -> list[Moved]``: transfers beside the all-reduces of `Strategy.hidden`."""

    def register(function):
        for name in primitives:
            _MOVED[name] = function
        return function

    return register


def moved_inside(eqn, chosen: tuple[Strategy, ...], sizes: tuple[int, ...]) -> list[Moved]:
    """Return the communication inside an equation under the strategies chosen per axis; of loops see `control`."""
    found = []
    for axis, strategy in enumerate(chosen):
        for i in strategy.hidden:
            aval = eqn.outvars[i].aval
            codes = tuple(r.outs[i] for r in chosen)
            block = math.prod(local_shape(aval.shape, codes, sizes)) * aval.dtype.itemsize
            found.append(Moved("psum", axis, interconnect_bytes("psum", sizes[axis], block)))
    more = _MOVED.get(eqn.primitive.name)
    return found if more is None else found + more(eqn, chosen, sizes)


@contextlib.contextmanager
def only_rules_of(*primitives: str):
    """Keep only the rules of ``primitives`` within the block, so that everything else takes the fallback."""
    kept = dict(_STRATEGIES)
    for name in set(_STRATEGIES) - set(primitives):
        del _STRATEGIES[name]
    try:
        yield
    finally:
        _STRATEGIES.clear()
        _STRATEGIES.update(kept)


def has_rule(primitive: str) -> bool:
    """Return whether the table has strategies for a primitive."""
    return primitive in _STRATEGIES


def names() -> list[str]:
    """Return the primitives that have strategies."""
    return sorted(_STRATEGIES)


def registered_rules() -> dict[str, Callable]:
    """Return the rules by primitive name."""
    return dict(_STRATEGIES)


def strategies_of(eqn, size: int, axis: int = 0) -> list[Strategy]:
    """Return the strategies of an equation on mesh axis ``axis`` of ``size`` ranks; the all-B strategy is the last."""
    # A pin is the only equation that refers to an axis.
    if eqn.primitive.name == "to_sbp":
        codes = eqn.params["codes"]
        # A pin of another placement, where no program runs.
        code = codes[axis] if axis < len(codes) else FREE
        if code != FREE:
            return [Strategy((code,), (code,))]
        return [*same_dims(eqn), Strategy((P,), (P,)), Strategy((B,), (B,), divided=False)]
    # Of a function that the user has given a rule, see `_core.tracing.wrap_jax`.
    own = eqn.params.get("sbp_rule")
    find = _STRATEGIES.get(eqn.primitive.name) if own is None else lambda *_: own.strategies
    found = list(find(eqn, size)) if find is not None else []
    if find is None and eqn.primitive.name not in _ANNOUNCED:
        _ANNOUNCED.add(eqn.primitive.name)
        log.info("no rule for primitive %r: its inputs are boxed to broadcast", eqn.primitive.name)
    requested = strategy_name(eqn, axis)
    if requested:
        found = [strategy for strategy in found if strategy.name == requested] or found
    # Always legal, so every program has a plan. It is last: on one axis the first of equal cost is taken.
    everything = Strategy((B,) * len(eqn.invars), (B,) * len(eqn.outvars), divided=False)
    unique = dict.fromkeys(strategy for strategy in found if strategy != everything)
    return [*unique, everything]


def strategy_name(eqn, axis: int) -> str:
    """Return the name of the strategy that an equation requests on an axis, or ""."""
    requested = eqn.params.get("across", ())
    return requested[axis] if axis < len(requested) else ""


def is_refused(eqn, chosen: tuple[Strategy, ...], axes: tuple[int, ...]) -> bool:
    """Return whether strategies chosen for ``axes`` differ from requested ones that exist.

    They are legal, as the last resort where other axes allow nothing else.
    """
    if not any(eqn.params.get("across", ())):
        return False
    requested = ((strategy, strategy_name(eqn, a), a) for strategy, a in zip(chosen, axes, strict=True))
    return any(name not in ("", s.name) and _has_strategy(eqn, name, a) for s, name, a in requested)


def _has_strategy(eqn, name: str, axis: int) -> bool:
    return any(strategy.name == name for strategy in strategies_of(eqn, 2, axis))


def jointly_legal(eqn, chosen: tuple[Strategy, ...], sizes: tuple[int, ...]) -> bool:
    """Return whether strategies chosen per axis go together: rigid dims divide evenly over all their axes."""
    for strategy in chosen:
        if any(sum(other.ins[i] == strategy.ins[i] for other in chosen) > 1 for i in strategy.alone):
            return False
    if not any(strategy.rigid_ins or strategy.rigid_outs for strategy in chosen):
        return True
    for rigid, codes, variables in (("rigid_ins", "ins", eqn.invars), ("rigid_outs", "outs", eqn.outvars)):
        for i in {i for strategy in chosen for i in getattr(strategy, rigid)}:
            nd = tuple(getattr(strategy, codes)[i] for strategy in chosen)
            for dim, axes in enumerate(axes_of_dims(nd, len(variables[i].aval.shape))):
                if axes and not even_split.even(variables[i].aval.shape[dim], tuple(sizes[a] for a in axes)):
                    return False
    for strategy in chosen:
        over = tuple(n for n, other in zip(sizes, chosen, strict=True) if other.ins[:1] == strategy.ins[:1])
        if strategy.groups and not even_split.even(strategy.groups, over):
            return False
    return True


class Context:
    """Layouts and offsets for a `local` function, which computes one equation on this rank's blocks.

    Attributes:
        eqn: the equation, with global shapes.
        here: this rank's position in the mesh.
        ins: the nd-sbp codes of each operand.
        outs: the nd-sbp codes of each output.
        body: the plan of a loop's body, if it was planned with the program around it.
    """

    def __init__(self, eqn, here: MeshPosition, ins: tuple, outs: tuple, body=None) -> None:
        self.eqn = eqn
        self.here = here
        self.ins = ins
        self.outs = outs
        self.body = body

    @property
    def params(self) -> dict:
        """The equation's parameters."""
        return self.eqn.params

    def in_shape(self, i: int) -> tuple[int, ...]:
        """Return the logical shape of operand ``i``."""
        return self.eqn.invars[i].aval.shape

    def out_shape(self, i: int = 0) -> tuple[int, ...]:
        """Return the logical shape of output ``i``."""
        return self.eqn.outvars[i].aval.shape

    def local_out(self, i: int = 0) -> tuple[int, ...]:
        """Return the shape of this rank's block of output ``i``."""
        return local_shape(self.out_shape(i), self.outs[i], self.here.sizes)

    def in_axes(self, i: int, dim: int) -> tuple[int, ...]:
        """Return the mesh axes that split dim ``dim`` of operand ``i``."""
        return tuple(a for a, c in enumerate(self.ins[i]) if c == dim)

    def out_axes(self, i: int, dim: int) -> tuple[int, ...]:
        """Return the mesh axes that split dim ``dim`` of output ``i``."""
        return tuple(a for a, c in enumerate(self.outs[i]) if c == dim)

    def in_part(self, i: int, dim: int):
        """Return ``(offset, count)`` of this rank's block along dim ``dim`` of operand ``i``."""
        return self.here.part(self.in_shape(i)[dim], self.in_axes(i, dim))

    def out_part(self, i: int, dim: int):
        """Return ``(offset, count)`` of this rank's block along dim ``dim`` of output ``i``."""
        return self.here.part(self.out_shape(i)[dim], self.out_axes(i, dim))

    def mask(self, x, i: int, dims, fill):
        """Return block ``x`` of operand ``i`` with the padding along ``dims`` set to ``fill``."""
        for dim in dims:
            axes = self.in_axes(i, dim)
            if even_split.even(self.in_shape(i)[dim], tuple(self.here.sizes[a] for a in axes)):
                continue
            _, count = self.in_part(i, dim)
            # `where`, not a product with a mask: the padding may hold NaN.
            x = jnp.where(rows_below(count, x.shape, dim), x, jnp.asarray(fill, x.dtype))
        return x

    def names(self, axes) -> tuple[str, ...]:
        """Return the names of mesh axes, for collectives."""
        return tuple(self.here.names[a] for a in axes)

    def bind(self, *blocks, **changed):
        """Bind the primitive to blocks with some parameters changed."""
        params = {**self.params, **changed}
        return self.eqn.primitive.bind(*blocks, **params)

    def everything_is_broadcast(self) -> bool:
        """Return whether no operand and no output is divided or partial."""
        return all(c == B for codes in (*self.ins, *self.outs) for c in codes)


def rows_below(count, shape: tuple[int, ...], dim: int):
    """Return a mask of ``shape`` that is true where the index along ``dim`` is below ``count``."""
    index = jnp.arange(shape[dim], dtype=jnp.int32) < count
    return jnp.broadcast_to(index.reshape((-1,) + (1,) * (len(shape) - dim - 1)), shape)


def compute(ctx: Context, blocks) -> list:
    """Compute one equation on this rank's blocks."""
    primitive = ctx.eqn.primitive
    if primitive.name == "to_sbp":
        return list(blocks)
    # Where nothing is divided the primitive itself is bound: no mask, no offset, and XLA's own lowering.
    ours = primitive.name in _WHOLE or ctx.body is not None or not ctx.everything_is_broadcast()
    function = _LOCAL.get(primitive.name) if ours else None
    if function is not None:
        result = function(ctx, *blocks)
        return list(result) if isinstance(result, (tuple, list)) else [result]
    return compute_whole(ctx, blocks)


def compute_whole(ctx: Context, blocks) -> list:
    """Bind the primitive to the blocks with the parameters it has."""
    return bind(ctx.eqn, blocks)


def same_dims(eqn, *, outputs: int | None = None) -> list[Strategy]:
    """Return the strategies that split a pointwise equation; scalars and dims of size 1 stay broadcast."""
    shape = eqn.outvars[0].aval.shape
    count = len(eqn.outvars) if outputs is None else outputs
    found = []
    for dim, n in enumerate(shape):
        # A split of one row leaves all other ranks without any; broadcast costs no more.
        if n == 1:
            continue
        ins = tuple(dim if v.aval.shape and v.aval.shape[dim] == n else B for v in eqn.invars)
        found.append(Strategy(ins, (dim,) * count))
    return found


def other_dims(eqn, used) -> list[Strategy]:
    """Return the strategies that split the dims along which an equation does not look, on all operands and outputs."""
    shape = eqn.invars[0].aval.shape
    dims = (d for d, n in enumerate(shape) if n > 1 and d not in used)
    return [Strategy((d,) * len(eqn.invars), (d,) * len(eqn.outvars)) for d in dims]


def is_number(variable) -> bool:
    """Return whether a value's dtype can be a partial sum: numbers and booleans, no random keys."""
    return hasattr(variable.aval, "dtype") and not hasattr(variable.aval.dtype, "_rules")
