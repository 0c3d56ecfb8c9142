"""`Permutation`: random permutation computed item by item (a Feistel network), without a list of n numbers.

A number below n is written as a pair ``(left, right)`` on a grid of about √n × √n. Each round adds to one of the two a
hash of the other, which can be undone: so the map is one-to-one, whatever the hash. The grid may be a little larger
than n; a number that lands outside is mapped again, until it lands inside. Source: Feistel networks, cycle walking
(Black and Rogaway, "Ciphers with arbitrary finite domains", 2002).

    order = Permutation(1_000_000_000_000, seed=(0, 3))
    order[5]                                   # the index of the sixth item of epoch 3, in microseconds
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_ROUNDS = 4  # of both halves; four halves already look random without the keys (Luby and Rackoff, 1988)
_MASK = (1 << 64) - 1


def _mix_bits(value: int) -> int:
    """Return a hash of 64 bits. Source: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class Permutation:
    """The numbers below n in a random order.

    Args:
        n: the number of items.
        seed: a number, or several, none below zero.

    Example:
        >>> order = Permutation(5, seed=0)
        >>> sorted(order[i] for i in range(5))
        [0, 1, 2, 3, 4]
    """

    def __init__(self, n: int, seed: int | Sequence[int]) -> None:
        self.n = n
        self._rows = math.isqrt(max(n - 1, 0)) + 1
        self._columns = -(-n // self._rows)
        self._keys: list[int] = np.random.SeedSequence(seed).generate_state(2 * _ROUNDS, np.uint64).tolist()

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < self.n:
            raise IndexError(f"index {index} is outside an order of {self.n}")
        rows, columns, keys = self._rows, self._columns, self._keys
        while True:
            left, right = divmod(int(index), columns)
            for i in range(0, 2 * _ROUNDS, 2):
                left = (left + _mix_bits(right + keys[i])) % rows
                right = (right + _mix_bits(left + keys[i + 1])) % columns
            index = left * columns + right
            if index < self.n:
                return index
