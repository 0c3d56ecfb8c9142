"""Schedules that multiply the rate at steps."""

import pytest

from tests.optim.schedule_histories import assert_equals_torch

SCHEDULES = {
    "step": lambda m, o: m.StepLR(o, 7, 0.3),
    "multi-step": lambda m, o: m.MultiStepLR(o, [3, 9, 9, 20], gamma=0.5),
    "exponential": lambda m, o: m.ExponentialLR(o, 0.95),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_torch(name):
    assert_equals_torch(SCHEDULES[name])
