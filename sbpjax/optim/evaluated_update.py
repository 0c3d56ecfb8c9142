"""Evaluated updates: NumPy computes the first updates of an optimizer, with one trace for parameters of all shapes.

The program of an update has the equations of each parameter, and to trace it takes 5 ms a shape, more than the first
step of PyTorch in all. A rule that has each element by itself (`rules.elementwise`) is traced here for one small array,
and that trace computes every parameter:

    trace    adam(p f32[7], g f32[7], exp_avg f32[7], exp_avg_sq f32[7], step, lr, …)     22 NumPy calls
    run      on the arrays of a weight (64, 512), of its bias (512,), …                   the same calls

Other updates are traced as a whole, by `first_use.evaluate_traced`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from sbpjax._core.compiler.eager.evaluator import first_use
from sbpjax._core.runtime.gc_pause import pause_gc
from sbpjax.optim.rules import Bucket, parameter_update

_SIZE = 7  # of the arrays that a rule is traced for


class _Piece(NamedTuple):
    """Part of an update for one bucket: positions among the inputs of the program.

    Attributes:
        run: the program of one parameter.
        shared: its skip flag, if any, its step count and its numbers, in the order of its inputs.
        params: per parameter its own, its gradient's and its states' positions.
        count: of the step count.
    """

    run: Any
    shared: tuple[int, ...]
    params: list[tuple[int, ...]]
    count: int


def evaluate_update(buckets: tuple[Bucket, ...], guarded: bool, arrays: list) -> Any:
    """Return the evaluated program of `rules.update` for inputs like these; None if it is not elementwise."""
    places = iter(range(len(arrays)))
    skip = (next(places),) if guarded else ()
    pieces: list[_Piece] = []
    outs: list[int] = []
    for bucket in buckets:
        piece = _piece_of(bucket, skip, places, arrays)
        if piece is None:
            return None
        pieces.append(piece)
        outs.append(piece.count)
        for kind in zip(*[(param, *states) for param, _, *states in piece.params]):
            outs += kind

    def run(*given: np.ndarray) -> list[np.ndarray]:
        results: list[Any] = []
        for piece in pieces:
            count = given[piece.count]
            results.append(np.asarray(count + np.where(given[skip[0]], 0, 1) if skip else count + 1, count.dtype))
            shared = [given[i] for i in piece.shared]
            for kind in zip(*[piece.run(*shared, *[given[i] for i in own]) for own in piece.params]):
                results += kind
        return results

    sizes = [(piece.run.equations, np.size(arrays[own[0]]), len(own)) for piece in pieces for own in piece.params]
    run.equations = sum(equations for equations, _, _ in sizes)  # type: ignore[attr-defined]
    run.cost_ns = sum((equations + arrays) * (5e3 + size) for equations, size, arrays in sizes)  # type: ignore[attr-defined]
    return first_use.evaluate_elementwise("update", run, arrays, outs)


def _piece_of(bucket: Bucket, skip: tuple[int, ...], places: Iterator[int], arrays: list) -> _Piece | None:
    """Return the part of a bucket, whose positions come next; None if it is not elementwise."""
    if bucket.rows or bucket.lazy or not getattr(bucket.rule, "is_elementwise", False):
        return None
    numbers = {name: next(places) for name in bucket.hyper}
    count = next(places)
    params = list(zip(*[[next(places) for _ in range(bucket.count)] for _ in range(2 + len(bucket.states))]))
    if any(np.shape(arrays[i]) != np.shape(arrays[own[0]]) for own in params for i in own):
        return None
    kinds = {tuple([arrays[i].dtype for i in own]) for own in params}
    if len(kinds) != 1:
        return None
    # JAX flattens a dict in the order of its keys.
    shared = (*skip, count, *[numbers[name] for name in sorted(numbers)])
    types = tuple([(a.dtype, a.weak_type) for a in (jax.typeof(arrays[i]) for i in shared)])
    if any(np.shape(arrays[i]) for i in shared):
        return None
    run = _trace(bucket._replace(count=1), bool(skip), types, kinds.pop())
    return None if run is None else _Piece(run, shared, params, count)


@functools.lru_cache(maxsize=256)
@pause_gc()
def _trace(bucket: Bucket, guarded: bool, types: tuple, kinds: tuple) -> Any:
    """Return the program of one parameter, None if it is not elementwise.

    Args:
        bucket: the bucket, of one parameter.
        guarded: whether a flag can prevent any change.
        types: dtype and weak type of the shared inputs.
        kinds: the dtypes of the others.
    """
    shared = [jax.ShapeDtypeStruct((), dtype, weak_type=weak) for dtype, weak in types]
    skip = shared.pop(0) if guarded else None
    count, *numbers = shared
    own = [jax.ShapeDtypeStruct((_SIZE,), dtype) for dtype in kinds]
    closed = jax.make_jaxpr(parameter_update(bucket, guarded).function)(
        skip, count, dict(zip(sorted(bucket.hyper), numbers)), *own
    )
    run = first_use.program_of(closed, {})
    if run is None or not run.is_elementwise or [v.dtype for v in closed.out_avals] != [kinds[0], *kinds[2:]]:
        return None
    return run
