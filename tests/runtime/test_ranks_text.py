"""Ranks as text: short as it is, long as ranges; as Python it gives the ranks again."""

import numpy as np
import pytest

from sbpjax._core.runtime.ranks_text import ranks_text

MANY = np.arange(64)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "[3]"),
        ([[0, 1], [2, 3]], "[[0, 1], [2, 3]]"),
        (range(16), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"),
        (range(17), "range(17)"),
        (range(8, 72), "range(8, 72)"),
        (MANY * 2, "range(0, 127, 2)"),
        (MANY[::-1], "range(63, -1, -1)"),
        (MANY.reshape(8, 8), "np.arange(64).reshape(8, 8)"),
        (MANY.reshape(4, 4, 4) + 64, "np.arange(64, 128).reshape(4, 4, 4)"),
        (MANY.reshape(1, 64), "np.arange(64).reshape(1, 64)"),
        (MANY[:24].reshape(4, 6).T, None),
        (MANY[:32].reshape(8, 4).T, "[range(0, 29, 4), range(1, 30, 4), range(2, 31, 4), range(3, 32, 4)]"),
        ([*range(32), *range(40, 64)], "[*range(32), *range(40, 64)]"),
        ([7, *range(16), 99, 98], None),
        ([*range(0, 40, 2), *range(1, 40, 2)], "[*range(0, 39, 2), *range(1, 40, 2)]"),
        (np.random.default_rng(0).permutation(64).reshape(8, 8), None),
        (MANY[:20].reshape(10, 2)[::-1], None),
    ],
)
def test_the_text_is_the_ranks(ranks, text):
    found = ranks_text(ranks)
    assert text is None or found == text
    assert np.array_equal(np.asarray(eval(found, {"np": np})), np.asarray(ranks))


@pytest.mark.parametrize("seed", range(20))
def test_any_ranks_come_back(seed):
    draw = np.random.default_rng(seed)
    pieces = [np.arange(draw.integers(1, 9)) * draw.integers(1, 4) + 100 * i for i in range(draw.integers(3, 9))]
    ranks = np.concatenate([piece[:: draw.choice([-1, 1])] for piece in pieces])
    assert np.array_equal(np.asarray(eval(ranks_text(ranks))), ranks)


def test_ten_thousand_ranks_are_a_short_text():
    assert len(ranks_text(np.arange(10_000).reshape(10, 10, 100))) < 50
