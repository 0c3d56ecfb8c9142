"""Grids of a number of devices, and which of them is kept."""

import pytest

import sbpjax as flow
from sbpjax.errors import PlacementError
from sbpjax.sbp.hierarchies import fastest, shapes


def test_grids():
    assert shapes(8, 2) == [(8,), (2, 4), (4, 2)]
    assert shapes(8, 3) == [(8,), (2, 4), (4, 2), (2, 2, 2)]
    assert shapes(7, 3) == [(7,)] and shapes(1, 2) == [(1,)] and shapes(12, 1) == [(12,)]
    assert shapes(12, 2) == [(12,), (2, 6), (3, 4), (4, 3), (6, 2)]


def test_candidates_are_placements_of_the_first_devices():
    places = flow.placement.auto(4).candidates()
    assert [p.hierarchy for p in places] == [(4,), (2, 2)]
    assert all(sorted(p.ranks.flat) == [0, 1, 2, 3] for p in places)
    assert len(flow.placement.auto().candidates()) == 3  # of eight
    assert repr(flow.placement.auto(4)) == "sbpjax.placement.auto(4, type='cpu', axes=2)"


@pytest.mark.parametrize(
    "count, rule", [(9, "from 1 to 8"), (0, "from 1 to 8"), (True, "from 1 to 8"), (2.0, "from 1")]
)
def test_there_must_be_so_many_devices(count, rule):
    with pytest.raises(PlacementError, match=rf"(?s)placement.auto\({count!r}\).*rule: .*{rule}.*fix: "):
        flow.placement.auto(count)


def test_fix_for_too_many_devices_is_possible():
    with pytest.raises(
        PlacementError, match=r"seen: 8 cpu devices\n.*\n  fix:  placement.auto\(8\); SBPJAX_CPU_DEVICES"
    ):
        flow.placement.auto(16)


def test_a_grid_has_an_axis():
    with pytest.raises(PlacementError, match="at least one axis"):
        flow.placement.auto(4, axes=0)


@pytest.mark.parametrize(
    "times, best",
    [((10.0, 9.0, 8.0), (4, 2)), ((10.0, 9.95, 9.95), (8,)), ((5.0, 9.0, 8.0), (8,)), ((10.0, 8.0, 8.0), (2, 4))],
    ids=["fastest", "not by a percent", "a line", "the first of equals"],
)
def test_more_axes_must_win_by_a_percent(times, best):
    places = flow.placement.auto(8).candidates()
    made, place = fastest(places, lambda p: (p.hierarchy, times[places.index(p)]))
    assert made == place.hierarchy == best
