"""Measured prices: sane, remembered for the devices, and refused where nothing can run."""

import sys

import pytest

import sbpjax as flow
from sbpjax import auto
from sbpjax._core.planner.prices import links
from sbpjax.errors import PlacementError


@pytest.fixture
def brief(monkeypatch):
    """Measure the smallest sizes only."""
    calibrate = sys.modules["sbpjax._core.inspect.auto.calibrate"]
    monkeypatch.setattr(calibrate, "_LONG_ENOUGH_S", 0.0)
    monkeypatch.setattr(calibrate, "_RUNS", 1)
    monkeypatch.setattr(calibrate, "_MOST_LARGE", calibrate._LARGE)


def test_a_machine_is_measured_and_remembered(brief):
    place = flow.placement("cpu", [[0, 1], [2, 3]])
    try:
        model = auto.calibrate(place)
        assert links.of_placement(place) is model
        assert links.of_placement(flow.placement("cpu", range(4))).links == ()
    finally:
        links.forget(place)
    assert len(model.links) == 2 and model.name == "measured cpu × 4"
    assert all(link.alpha_us > 0 and link.bytes_per_s > 0 for link in model.links)
    assert model.alpha_us == max(link.alpha_us for link in model.links)
    assert model.flops_f32 > 1e6 and model.memory_bytes_per_s > 1e6


def test_devices_that_are_not_there_cannot_be_timed():
    class Absent:
        is_present = False

        def __repr__(self):
            return "placement.topology('v5p:2x2x1', [4])"

    with pytest.raises(PlacementError, match="(?s)another machine.*only programs that run can be timed.*fix: .*preset"):
        auto.calibrate(Absent())
