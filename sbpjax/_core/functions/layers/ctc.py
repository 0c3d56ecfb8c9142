"""Connectionist temporal classification (CTC) loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from sbpjax._core.ops.losses import ctc as ops
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.dispatch.dispatch import apply
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.errors import AbstractError, DataDependentError, OpValueError
from sbpjax.sbp.algebra import broadcast


def _check_lengths(name: str, values: list[int] | None, most: int | None) -> None:
    """Raise `OpValueError` for a known length that is negative or above the size of its dim."""
    if values and most is not None and max(values) > most:
        rule = f"Expected {name} to have value at most {most}, but got value {max(values)}"
        raise OpValueError("ctc_loss(...)", f"{name} of up to {max(values)}", rule, f"{name}.clamp(max={most})")
    if values and min(values) < 0:
        rule = f"Expected {name} to have value at least 0, but got value {min(values)}"
        raise OpValueError("ctc_loss(...)", f"{name} from {min(values)}", rule, f"{name}.clamp(min=0)")


def _lengths(lengths: Any, like: Tensor) -> tuple[Tensor, list[int] | None]:
    """Return lengths as a tensor on the placement of `like`, and their values where they can be read."""
    if isinstance(lengths, Tensor):
        try:
            values = np.asarray(lengths.detach().numpy()).reshape(-1)
        except (DataDependentError, AbstractError):  # in a traced program, or without data: the caller takes a bound
            return lengths, None
        return lengths, [int(n) for n in values]
    values = [int(n) for n in (lengths if isinstance(lengths, (tuple, list)) else [lengths])]
    made = from_data.tensor(values, dtype=dtypes.int64)
    if like.is_global:
        made = made.to_global(like.placement, [broadcast] * len(like.sbp))
    return made, values


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log probability of label sequences, over all alignments, reduced.

    Args:
        log_probs: `(T, N, C)` or `(T, C)`, logarithms of probabilities; a split of N needs no communication.
        targets: `(N, S)`, or all targets one after the other.
        input_lengths: `(N,)`, as a tensor or numbers; each at most T.
        target_lengths: `(N,)`, as a tensor or numbers.
        blank: the class of no label.
        reduction: ``"none"``, ``"sum"``, or ``"mean"``: of the losses divided by their targets' lengths.
        zero_infinity: an impossible sequence costs 0, without a gradient, rather than infinity.

    Raises:
        OpValueError: a length that is at hand is negative, or above the size of its dim.
    """
    given, at_hand = _lengths(input_lengths, log_probs)
    wanted, values = _lengths(target_lengths, log_probs)
    _check_lengths("input_lengths", at_hand, log_probs.shape[0])
    _check_lengths("target_lengths", values, targets.shape[1] if targets.ndim > 1 else None)
    bound = max(values, default=0) if values is not None else targets.shape[-1]
    return apply(
        ops.ctc_loss,
        log_probs,
        targets,
        given,
        wanted,
        blank=blank,
        longest=bound,
        reduction=reduction,
        zero_infinity=zero_infinity,
    )
