"""Line charts: round ticks, thinned lines that keep spikes, gaps at NaN."""

import math

import pytest

from sbpjax.train.curves import Line, number, panel, thin, ticks


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-3.0, 3.0, [-2.0, 0.0, 2.0]), (1990.0, 2010.0, [1990.0, 1995.0])],
)
def test_ticks_are_round_numbers_inside(low, high, expected):
    found = ticks(low, high)
    assert found[: len(expected)] == pytest.approx(expected) and all(low <= value <= high for value in found)


def test_thinned_line_keeps_spikes():
    values = [1.0] * 5000
    values[1234], values[4321] = 9.0, -9.0
    found = thin(Line("a", range(5000), values))
    assert len(found.steps) <= 300 and max(found.values) == 9.0 and min(found.values) == -9.0
    assert list(found.steps) == sorted(found.steps)


def test_nan_interrupts_a_line():
    picture = panel("loss", [Line("a", range(6), [1.0, 2.0, math.nan, 2.0, math.inf, 1.0])])
    assert picture.count("<polyline") == 3 and picture.count("<circle") == 4 and "nan" not in picture


def test_panel_without_a_finite_value_is_empty():
    assert panel("loss", [Line("a", [1], [math.nan])]) == ""


def test_constant_line_has_an_interval():
    picture = panel("lr", [Line("a", [10, 20], [0.1, 0.1])])
    assert "step 10: 0.1" in picture and "NaN" not in picture


def test_numbers_have_useful_digits():
    assert [number(x) for x in (1234567.0, 0.000123456, 3.0)] == ["1,234,567", "0.0001235", "3"]
