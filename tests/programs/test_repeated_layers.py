"""Runs in lists of equation forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbpjax._core.programs.repeated_layers import repetitions


@pytest.mark.parametrize(
    "text, runs",
    [
        ("abcbcbcd", [(1, 7, 2)]),
        ("abcdefgh", []),
        ("xyzabcabcabcabcpqr", [(3, 15, 3)]),
        ("aabaabaabaab", [(0, 12, 3)]),  # not three runs of period 1
        ("0ab1ab1ab1ab2" + "3cde4cde4cde4" + "9", [(1, 10, 3), (14, 26, 4)]),
    ],
)
def test_runs_are_found(text, runs):
    assert repetitions([ord(c) for c in text]) == runs


@given(st.lists(st.integers(0, 3), max_size=60))
def test_runs_are_disjoint_and_periodic(signatures):
    end = 0
    for start, stop, period in repetitions(signatures):
        assert end <= start and stop - start >= 2 * period and (stop - start) % period == 0
        assert all(signatures[i] == signatures[i + period] for i in range(start, stop - period))
        end = stop
