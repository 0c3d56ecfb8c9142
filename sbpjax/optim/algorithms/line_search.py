"""Line search for the strong Wolfe conditions, used by `LBFGS`.

Along a direction d from x, with ``f(t) = loss(x + t d)`` and its slope ``f'(t) = grad · d``, a step t is taken if

    f(t) <= f(0) + c1 t f'(0)        and        |f'(t)| <= c2 |f'(0)|

First steps grow until two of them bracket such a point, then the bracket shrinks; both by the minimum of the cubic
through the two ends. Of the bracket's ends, the *low* one is the better so far.

Source: Nocedal and Wright, Numerical Optimization (2006), algorithms 3.5 and 3.6, with the safeguards of Schmidt's
minFunc: a trial near an end of the bracket is moved off it if the one before was near as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

C1, C2 = 1e-4, 0.9


class LineSearchTrial(NamedTuple):
    """A step that was tried.

    Attributes:
        t: the step size along the direction.
        loss: the loss there.
        grad: the gradient there, a vector.
        slope: the gradient along the direction, a number of the parameters' precision.
    """

    t: float
    loss: float
    grad: Any
    slope: Any


def cubic_minimum(a: LineSearchTrial, b: LineSearchTrial, low: float | None = None, high: float | None = None) -> float:
    """Return where the cubic through the losses and slopes of two trials is least, within bounds.

    Args:
        a: one trial.
        b: another.
        low: the lower bound; the smaller of both steps if not given.
        high: the upper bound; the larger of both.
    """
    left, right = (a, b) if a.t <= b.t else (b, a)
    low = left.t if low is None else low
    high = right.t if high is None else high
    if left.t == right.t:
        return (low + high) / 2
    with np.errstate(all="ignore"):  # infinite losses and slopes of a NumPy dtype
        d1 = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.t - right.t)
        square = d1**2 - left.slope * right.slope
        if not square >= 0:
            return (low + high) / 2
        d2 = np.sqrt(square)
        bottom = right.slope - left.slope + 2 * d2
        if bottom == 0:
            return (low + high) / 2
        t = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / bottom)
    return min(max(t, low), high)


def strong_wolfe(
    evaluate: Callable[[float], LineSearchTrial],
    start: LineSearchTrial,
    t: float,
    size: float,
    tolerance_change: float,
    limit: int = 25,
) -> tuple[LineSearchTrial, int]:
    """Return the trial to take, and how often the loss was evaluated.

    Args:
        evaluate: tries a step.
        start: the trial of step 0.
        t: the first step to try.
        size: the largest element of the direction.
        tolerance_change: a bracket whose ends differ by less than this in every element is not made smaller.
        limit: how many trials may follow the first.
    """

    def falls_too_little(trial: LineSearchTrial) -> bool:
        return trial.loss > start.loss + C1 * trial.t * start.slope

    def is_flat(trial: LineSearchTrial) -> bool:
        return abs(trial.slope) <= -C2 * start.slope

    before, now, trials = start, evaluate(t), 1
    bracket = None
    while trials <= limit:
        worse = trials > 2 and now.loss >= before.loss
        if falls_too_little(now) or worse or (not is_flat(now) and now.slope >= 0):
            bracket = [before, now]
            break
        if is_flat(now):
            return now, trials
        longer = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10)
        before, now = now, evaluate(longer)
        trials += 1
    if bracket is None:
        bracket = [start, now]
    low, high = sorted(bracket, key=lambda trial: trial.loss)
    was_near = False
    while trials <= limit and abs(high.t - low.t) * size >= tolerance_change:
        first, last = min(low.t, high.t), max(low.t, high.t)
        t = cubic_minimum(low, high)
        margin = 0.1 * (last - first)
        near = min(last - t, t - first) < margin
        if near and (was_near or t >= last or t <= first):
            t = last - margin if abs(t - last) < abs(t - first) else first + margin
            near = False
        was_near = near
        now = evaluate(t)
        trials += 1
        if falls_too_little(now) or now.loss >= low.loss:
            high = now
            continue
        if is_flat(now):
            return now, trials
        if now.slope * (high.t - low.t) >= 0:
            high = low
        low = now
    return low, trials
