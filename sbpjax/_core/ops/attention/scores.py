"""Attention scores: scale, soft cap and window, shared by all implementations.

Worked case: with ``Scores(scale=0.125, window=(2, 0), soft_cap=50.0)`` the score of query 5 and key 4 is
``50 · tanh(0.125 · q·k / 50)``, and query 5 reads keys 3, 4 and 5: two before its own number, none after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jax import lax

from ..promote import BOOL

Window = tuple[int | None, int | None]
EVERY_KEY: Window = (None, None)
CAUSAL: Window = (None, 0)


@dataclass(frozen=True)
class Scores:
    """Computation of scores from products.

    Attributes:
        scale: factor of the products.
        window: the number of keys that a query reads before and after its own number; None: all of them.
        soft_cap: the bound that scores approach by a tanh; None: they have none.
    """

    scale: float
    window: Window = EVERY_KEY
    soft_cap: float | None = None

    def cap_scores(self, s):
        """Return scores under the cap, and the slope of the cap there; without a cap as they are, and None."""
        if self.soft_cap is None:
            return s, None
        cap = np.asarray(self.soft_cap, s.dtype)
        bent = lax.tanh(s / cap)
        return bent * cap, 1 - bent * bent

    def share(self, keys: int) -> float:
        """Return which part of so many keys a query reads on average, as long sequences do."""
        left, right = (keys if n is None else n for n in self.window)
        sides = [min(n / keys, 0.5) for n in (left, right)]
        return min(sum(sides) + (1 / keys if max(sides) < 0.5 else 0), 1.0)


def in_window(row, key, window: Window):
    """Return whether queries of the given numbers read keys of the given numbers; None if all do.

    Args:
        row: integers.
        key: integers of the same shape.
        window: as in `Scores`.
    """
    left, right = window
    before = None if left is None else lax.ge(key, lax.sub(row, np.asarray(left, row.dtype)))
    if right is None:
        return before
    behind = lax.ge(row if right == 0 else lax.add(row, np.asarray(right, row.dtype)), key)
    return behind if before is None else lax.bitwise_and(before, behind)


def may_hide_all(mask, segments, how: Scores) -> bool:
    """Return whether masks, windows or segments may leave a query without any key; its result is then 0.

    Numbers that are added do not hide, even if they are minus infinity: a row of these gives NaN, as in PyTorch.
    """
    some = how.window != EVERY_KEY
    always_one = how.window == CAUSAL and mask is None
    return segments is not None or (mask is not None and mask.dtype == BOOL) or (some and not always_one)
