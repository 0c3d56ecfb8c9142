"""Connectionist temporal classification (CTC): the loss, and a greedy decoder.

The labels are spread with blanks between them, ``2 L + 1`` states; ``alpha[s]`` is the log probability of all
alignments that end in state s. Worked case: for the label "a" the states are blank, a, blank; each time step stays,
moves by one, or by two over a blank between different labels. The recursion over time is one `lax.scan`, so the
program's size does not depend on T.

Source: Graves et al., Connectionist Temporal Classification (2006).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail
from ..promote import INT64, broadcast_to, cast
from ..shapes.gather import take_along
from ..slopes import slopes

_NEVER = -1e30  # stands for log 0 where a difference of two of them is taken


def _pad_targets(targets, lengths, longest: int):
    """Return targets ``(N, longest)``, also from one long vector of all of them."""
    if targets.ndim == 2:
        return lax.slice_in_dim(targets, 0, min(longest, targets.shape[1]), axis=1)
    start = lax.cumsum(lengths, 0) - lengths
    at = lax.expand_dims(start, (1,)) + np.arange(longest)
    at = lax.min(at, np.asarray(max(targets.shape[0] - 1, 0), at.dtype))
    return jnp.take(targets, at, axis=0)


def _log_sum(*terms):
    """Return log(sum(e**terms)), with a derivative also where all terms stand for log 0."""
    top = lax.stop_gradient(terms[0])
    for term in terms[1:]:
        top = lax.max(top, lax.stop_gradient(term))
    total = lax.exp(terms[0] - top)
    for term in terms[1:]:
        total = total + lax.exp(term - top)
    return lax.log(total) + top


def ctc_losses(log_probs, targets, input_lengths, target_lengths, /, blank: int, longest: int, zero_infinity: bool):
    """Return minus the log probability of each label sequence, ``(N,)``.

    The gradient in ``log_probs`` takes them for a log_softmax, as PyTorch's does.

    Args:
        log_probs: ``(T, N, C)``, logarithms of probabilities.
        targets: ``(N, S)`` padded, or ``(sum of lengths,)``.
        input_lengths: ``(N,)``, at most T.
        target_lengths: ``(N,)``.
        blank: the class of no label.
        longest: a bound of the target lengths.
        zero_infinity: an impossible sequence costs 0, without a gradient, rather than infinity.
    """
    steps, batch, classes = log_probs.shape
    input_lengths, target_lengths = cast(input_lengths, INT64), cast(target_lengths, INT64)
    states = 2 * longest + 1
    labels = jnp.full((batch, states), blank, targets.dtype)
    if longest:
        padded = _pad_targets(targets, target_lengths, longest)
        spread_out = lax.pad(padded, np.asarray(blank, padded.dtype), [(0, 0, 0), (1, 1, 1)])
        missing = states - spread_out.shape[1]
        labels = lax.pad(spread_out, np.asarray(blank, padded.dtype), [(0, 0, 0), (0, missing, 0)])
    place = lax.broadcasted_iota(INT64, (batch, states), 1)
    last = broadcast_to(lax.expand_dims(2 * target_lengths, (1,)), (batch, states))
    labels = lax.select_n(lax.gt(place, last), labels, lax.full_like(labels, blank))
    # a state can be reached over the blank before it if it is a label unlike the last one
    before = lax.pad(labels, np.asarray(blank, labels.dtype), [(0, 0, 0), (2, -2, 0)])
    skips = lax.ne(labels, before) & lax.ne(labels, np.asarray(blank, labels.dtype)) & lax.ge(place, np.int64(2))
    index = lax.broadcast_in_dim(cast(labels, INT64), (steps, batch, states), (1, 2))
    emitted = take_along(log_probs, index, 2)  # (T, N, states)
    emitted = lax.max(emitted, np.asarray(_NEVER, emitted.dtype))
    never = jnp.full((batch, states), _NEVER, log_probs.dtype)
    first = lax.select_n(lax.lt(place, np.int64(2)) & lax.le(place, last), never, emitted[0])

    def shift(alpha, by: int):
        return lax.pad(alpha, np.asarray(_NEVER, alpha.dtype), [(0, 0, 0), (by, -by, 0)])

    def step(carry, now):
        alpha, time = carry
        over = lax.select_n(skips, never, shift(alpha, 2))
        new = lax.max(_log_sum(alpha, shift(alpha, 1), over) + now, np.asarray(_NEVER, alpha.dtype))
        running = broadcast_to(lax.expand_dims(lax.lt(time, input_lengths), (1,)), alpha.shape)
        return (lax.select_n(running, alpha, new), time + np.int64(1)), None

    (alpha, _), _ = lax.scan(step, (first, np.int64(1)), lax.slice_in_dim(emitted, 1, steps, axis=0))
    ends = [
        take_along(alpha, lax.expand_dims(lax.max(e, np.int64(0)), (1,)), 1)[:, 0]
        for e in (2 * target_lengths, 2 * target_lengths - 1)
    ]
    ends[1] = lax.select_n(lax.eq(target_lengths, np.int64(0)), ends[1], lax.full_like(ends[1], _NEVER))
    loss = -_log_sum(*ends)
    # without a time step only the empty sequence is possible
    none = lax.eq(input_lengths, np.int64(0))
    empty = lax.select_n(lax.eq(target_lengths, np.int64(0)), lax.full_like(loss, np.inf), lax.full_like(loss, 0))
    loss = lax.select_n(none, loss, empty)
    impossible = lax.gt(loss, np.asarray(-_NEVER / 2, loss.dtype))
    loss = lax.select_n(impossible, loss, lax.full_like(loss, 0 if zero_infinity else np.inf))
    running = lax.lt(
        lax.broadcasted_iota(INT64, log_probs.shape, 0), broadcast_to(input_lengths[:, None], log_probs.shape)
    )
    mass = lax.reduce_sum(lax.select_n(running, lax.full_like(log_probs, 0), lax.exp(log_probs)), (0, 2))
    unknown = lax.full_like(loss, 0 if zero_infinity else np.nan)
    return _normalize_gradient(loss, mass, lax.select_n(impossible, lax.full_like(loss, 1), unknown))


# torch's gradient in log_probs is that in the logits of a log_softmax, of which it cannot know. After one the term of
# the probabilities' mass, which is 1 in each step, has no effect; of a leaf it makes the gradient torch's.
@slopes(lambda t, out, loss, mass, scale: t, lambda t, out, loss, mass, scale: lax.mul(t, scale), None)
def _normalize_gradient(loss, mass, scale):
    return loss


def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    /,
    blank: int = 0,
    longest: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
):
    """Return the CTC loss, reduced: the mean is over the batch, of each loss divided by its target's length.

    Args:
        log_probs: ``(T, N, C)`` or ``(T, C)``.
        targets: ``(N, S)``, or all targets one after the other.
        input_lengths: ``(N,)`` or ``()``.
        target_lengths: ``(N,)`` or ``()``.
        blank: the class of no label.
        longest: a bound of the target lengths.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        zero_infinity: an impossible sequence costs 0, without a gradient, rather than infinity.
    """
    if not 0 <= blank < log_probs.shape[-1]:
        rule = "blank must be in label range"
        fail("shape", f"ctc_loss(blank={blank})", f"log_probs {log_probs.shape}", rule, "blank=0")
    single = log_probs.ndim == 2
    if single:
        log_probs, targets = lax.expand_dims(log_probs, (1,)), lax.reshape(targets, (1, targets.size))
    lengths = lax.reshape(target_lengths, (log_probs.shape[1],))
    given = lax.reshape(input_lengths, (log_probs.shape[1],))
    options = {"blank": blank, "longest": longest, "zero_infinity": zero_infinity}
    losses = ctc_losses(log_probs, targets, given, lengths, **options)
    if reduction == "none":
        return lax.squeeze(losses, (0,)) if single else losses
    if reduction == "sum":
        return lax.reduce_sum(losses, (0,))
    if reduction != "mean":
        fail("value", f"ctc_loss(reduction={reduction!r})", "", "reduction is 'none', 'mean' or 'sum'", "'mean'")
    count = cast(lax.max(lengths, np.ones((), lengths.dtype)), losses.dtype)
    return lax.reduce_sum(losses / count, (0,)) / losses.shape[0]


def ctc_greedy_decoder(log_probs, input_lengths, /, merge_repeated: bool = True):
    """Return the labels of the best class per step without blanks, and minus the sum of the best scores.

    The blank is the last class, unlike that of `ctc_loss`; OneFlow has it so.

    Args:
        log_probs: ``(T, N, C)``.
        input_lengths: ``(N,)``.
        merge_repeated: equal classes in consecutive steps count once.

    Returns:
        labels ``(N, T)``, int64, zeros after the last, and ``(N, 1)``.
    """
    steps, batch, classes = log_probs.shape
    best = lax.argmax(log_probs, 2, INT64)  # (T, N)
    running = lax.lt(
        lax.broadcasted_iota(INT64, (steps, batch), 0),
        lax.broadcast_in_dim(cast(input_lengths, INT64), (steps, batch), (1,)),
    )
    score = -lax.reduce_sum(
        lax.select_n(running, lax.full((steps, batch), 0, log_probs.dtype), lax.reduce_max(log_probs, (2,))), (0,)
    )
    kept = running & lax.ne(best, np.int64(classes - 1))
    if merge_repeated:
        before = lax.pad(best, np.int64(-1), [(1, -1, 0), (0, 0, 0)])
        kept = kept & lax.ne(best, before)
    place = lax.cumsum(cast(kept, INT64), 0) - np.int64(1)
    place = lax.select_n(kept, lax.full_like(place, steps), place)  # outside: not written
    hit = jnp.equal(lax.expand_dims(place, (2,)), np.arange(steps))  # (T, N, place)
    labels = lax.reduce_sum(cast(hit, INT64) * lax.expand_dims(best, (2,)), (0,))
    return labels, lax.expand_dims(score, (1,))
