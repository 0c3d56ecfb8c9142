"""Schedules one after another, and several at once."""

import pytest

from sbpjax.optim import lr_scheduler as schedules
from tests.optim.schedule_histories import assert_equals_torch, rates, sgd

SCHEDULES = {
    "sequence": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o, 0.1, 100), m.ExponentialLR(o, 0.9), m.CosineAnnealingLR(o, 12)], [5, 17]
    ),
    "chained": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 4), m.ExponentialLR(o, 0.9)]),
    "chained-three": lambda m, o: m.ChainedScheduler(
        [m.LinearLR(o, 0.2, 1.0, 6), m.StepLR(o, 10), m.MultiStepLR(o, [5, 25])], optimizer=o
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_torch(name):
    assert_equals_torch(SCHEDULES[name])


def test_a_sequence_shares_its_count_if_told_so():
    optimizer = sgd(1.0)
    parts = [schedules.ConstantLR(optimizer, 0.1, 2), schedules.ExponentialLR(optimizer, 0.9)]
    shared = schedules.SequentialLR(optimizer, parts, [2], interval_rescaling=False)
    assert rates(shared, 5) == pytest.approx([0.1, 0.1, 0.81, 0.729, 0.6561])
    own = schedules.SequentialLR(optimizer, parts, [2])
    assert rates(own, 5) == pytest.approx([0.1, 0.1, 1.0, 0.9, 0.81])
