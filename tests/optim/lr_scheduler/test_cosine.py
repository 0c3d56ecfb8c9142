"""Cosine schedules, with and without restarts."""

import math

import pytest

from sbpjax.optim import lr_scheduler as schedules
from tests.optim.schedule_histories import assert_equals_torch, rates, sgd

SCHEDULES = {
    "cosine": lambda m, o: m.CosineAnnealingLR(o, T_max=10),
    "cosine-min": lambda m, o: m.CosineAnnealingLR(o, T_max=7, eta_min=0.1),
    "restarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 5),
    "restarts-longer": lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, T_mult=3, eta_min=0.01),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_torch(name):
    assert_equals_torch(SCHEDULES[name])


def test_cosine_decay_ends_at_alpha():
    scheduler = schedules.CosineDecayLR(sgd(), decay_steps=4, alpha=0.2)
    factors = [0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi * t / 4)) for t in range(4)] + [0.2, 0.2]
    assert rates(scheduler, 6) == pytest.approx([0.5 * f for f in factors], rel=1e-15)


def test_restarts_decay_and_stop():
    scheduler = schedules.CosineAnnealingWarmRestarts(sgd(), 2, 2, 0.01, decay_rate=0.5, restart_limit=2)
    top = [0.01 + (0.5 - 0.01) * f for f in (1, 0.5)]
    second = [0.01 + (0.25 - 0.01) * 0.5 * (1 + math.cos(math.pi * t / 4)) for t in range(4)]
    assert rates(scheduler, 9) == pytest.approx([*top, *second, 0.01, 0.01, 0.01])


@pytest.mark.parametrize("factor", [2, 3, 5, 10])
def test_a_restart_begins_exactly_where_a_run_ends(factor):
    scheduler = schedules.CosineAnnealingWarmRestarts(sgd(), 10, factor)
    begin, length = 0, 10
    for run in range(8):
        assert scheduler.run_of(begin) == (run, 0, length)
        assert scheduler.lr_at(0.5, begin) == 0.5
        begin, length = begin + length, length * factor


@pytest.mark.parametrize("factor", [1, 2])
def test_restarts_have_no_negative_step(factor):
    scheduler = schedules.CosineAnnealingWarmRestarts(sgd(), 10, factor)
    scheduler.step(4)
    with pytest.raises(ValueError, match="non-negative epoch"):
        scheduler.step(-1)
    assert scheduler.last_step == 4
