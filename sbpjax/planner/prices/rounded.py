"""Sums that the TPU compiler sends in bfloat16: those whose result nothing reads in float32.

The gradient of a layer norm's weight is summed in float32 over the rows of a rank, then over tensor, and is rounded to
the weight's bfloat16:

    g:f32[8192] = all-reduce(partial)        28,672 bytes over eight ranks: the plan
    w:bf16[8192] = convert(g)
    g:bf16[8192] = all-reduce(convert(..))   14,336: what libtpu 0.0.42 makes of the two

It propagates bfloat16 from a ``convert`` back through what only moves or chooses numbers, through loops, and through
all-reduces, all-gathers and all-to-alls, up to the first that computes. What a sum reads counts as read in float32, so
of a sum over two axes only the second step is rounded. A reduce-scatter keeps its float32, and so does what is gathered
of it. A sum over dims of one number moves it only. Products at the default precision read bfloat16, too; they are left
out here.
"""

from __future__ import annotations

from jax.extend.core import Var

from sbpjax.programs.normalise import scan_counts
from sbpjax.programs.plan import Boxing, Plan
from sbpjax.programs.primitives import CHOICES, DYNAMIC, MOVES, PIECES

# What gives the numbers that it is given: their operands are read as their results are.
_GIVES = MOVES | PIECES | DYNAMIC | CHOICES | {"broadcast_in_dim", "gather"}
_SUMS = ("psum", "psum_scatter")


def read_in_float32(plan: Plan) -> set[Var]:
    """Return the values of a plan, and of the bodies planned with it, that have a reader who does not round them."""
    found: set[Var] = set()
    summed = {b.value for b in plan.boxings if any(step.kind in _SUMS and step.bytes for step in b.steps)}
    _collect(plan, [True] * len(plan.program.outvars), summed, found)
    return found


def _collect(plan: Plan, outs: list[bool], summed: set[Var], found: set[Var]) -> None:
    """Add the values of a program whose outputs are read in float32 where ``outs`` says so.

    Args:
        plan: the program's plan.
        outs: of each output, whether it is read in float32.
        summed: the values that are summed over ranks, which reads what they are made of in float32.
        found: the values found so far.
    """
    found.update(v for v, wide in zip(plan.program.outvars, outs, strict=True) if wide and isinstance(v, Var))
    for i, eqn in reversed(list(enumerate(plan.program.eqns))):
        wide = [v in found or v in summed for v in eqn.outvars]
        if i in plan.bodies:
            reads = _of_loop(eqn, plan.bodies[i], wide, summed, found)
        elif eqn.primitive.name == "optimization_barrier":
            reads = wide
        elif eqn.primitive.name == "convert_element_type":
            reads = [any(wide) if eqn.params["new_dtype"] == "float32" else eqn.params["new_dtype"] != "bfloat16"]
        else:
            reads = [any(wide) if _moves(eqn) else True] * len(eqn.invars)
        found.update(v for v, read in zip(eqn.invars, reads, strict=True) if read and isinstance(v, Var))


def _moves(eqn) -> bool:
    if eqn.primitive.name == "reduce_sum":
        return all(eqn.invars[0].aval.shape[dim] == 1 for dim in eqn.params["axes"])
    return eqn.primitive.name in _GIVES


def _of_loop(eqn, body: Plan, outs: list[bool], summed: set[Var], found: set[Var]) -> list[bool]:
    """Return which operands of a ``scan`` are read in float32, and add such values of its body."""
    consts, carry = scan_counts(eqn.params)
    while True:
        inside: set[Var] = set()
        _collect(body, outs, summed, inside)
        reads = [v in inside or v in summed for v in body.program.invars]
        carried = [a or b for a, b in zip(outs[:carry], reads[consts : consts + carry], strict=True)]
        if carried == outs[:carry]:
            found |= inside
            return reads
        outs = [*carried, *outs[carry:]]


def narrowed(boxing: Boxing, kinds: list[str], wide: set[Var]) -> list[bool]:
    """Return which steps of a conversion are sent in bfloat16.

    Args:
        boxing: the conversion.
        kinds: the kind of each of its steps, as the compiler writes it.
        wide: the values that are read in float32, of `read_in_float32`.
    """
    if boxing.dtype != "float32" or boxing.value is None or boxing.value in wide:
        return [False] * len(kinds)
    last = max((i for i, kind in enumerate(kinds) if kind in _SUMS), default=0)
    return [i >= last and kinds[last] != "psum_scatter" for i in range(len(kinds))]
