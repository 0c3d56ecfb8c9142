"""Sharding rules of decompositions, solves and FFTs: batch dims split, linear operands may be partial."""

from __future__ import annotations

from sbpjax._core.programs.primitives import MATRIX_DIMS

from .table import B, Context, P, Strategy, compute_whole, is_number, local, rule

_SOLVES = ("triangular_solve", "tridiagonal_solve")


@rule(*MATRIX_DIMS)
def decomposition(eqn, size: int) -> list[Strategy]:
    """Split batch dims everywhere; a solve takes a partial right-hand side, and one split by columns."""
    shape = eqn.invars[0].aval.shape
    batch = len(shape) - MATRIX_DIMS[eqn.primitive.name][0]
    found = [Strategy((d,) * len(eqn.invars), (d,) * len(eqn.outvars)) for d in range(batch) if shape[d] > 1]
    if eqn.primitive.name in _SOLVES:
        others = (B,) * (len(eqn.invars) - 1)
        columns = batch + (1 if eqn.params.get("left_side", True) else 0)
        if eqn.invars[-1].aval.shape[columns] > 1:
            found.append(Strategy((*others, columns), (columns,)))
        found.append(Strategy((*others, P), (P,)))
    return found


@local(*MATRIX_DIMS)
def decomposition_local(ctx: Context, *blocks):
    """Decompose the blocks; padded matrices are zeros, since LAPACK may not return from NaN."""
    batch = range(len(ctx.in_shape(0)) - MATRIX_DIMS[ctx.eqn.primitive.name][0])
    return compute_whole(ctx, [ctx.mask(x, i, batch, 0) for i, x in enumerate(blocks)])


@rule("fft")
def fft(eqn, size: int) -> list[Strategy]:
    """Split batch dims; every Fourier transform is linear."""
    shape = eqn.invars[0].aval.shape
    batch = len(shape) - len(eqn.params["fft_lengths"])
    found = [Strategy((d,), (d,)) for d in range(batch) if shape[d] > 1]
    return [*found, Strategy((P,), (P,))] if is_number(eqn.invars[0]) else found
