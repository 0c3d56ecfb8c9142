"""Schedules that only OneFlow has: values at their ends, restarts, warm-ups, sequences.

Source: `warmup` and `ramp` of `optim/lr_scheduler/`.
"""

import math

import pytest

from sbpjax.optim import lr_scheduler as schedules
from tests.optim.test_schedule_state import rates, sgd


def test_cosine_decay_ends_at_alpha():
    scheduler = schedules.CosineDecayLR(sgd(), decay_steps=4, alpha=0.2)
    factors = [0.2 + 0.8 * 0.5 * (1 + math.cos(math.pi * t / 4)) for t in range(4)] + [0.2, 0.2]
    assert rates(scheduler, 6) == pytest.approx([0.5 * f for f in factors], rel=1e-15)


def test_polynomial_has_an_end_rate_and_cycles():
    plain = schedules.PolynomialLR(sgd(), decay_batch=4, end_learning_rate=0.1, power=2.0)
    assert rates(plain, 6) == pytest.approx([0.1 + 0.4 * (1 - t / 4) ** 2 for t in (0, 1, 2, 3, 4, 4)])
    cycling = schedules.PolynomialLR(sgd(), 4, end_learning_rate=0.1, cycle=True)
    assert schedules.PolynomialLR(sgd(), decay_batch=4).lr_at(0.5, 9) == 0.0001
    factors = (1, 0.75, 0.5, 0.25, 0, 3 / 8, 0.25, 1 / 8, 0, 0.25)
    assert rates(cycling, 10) == pytest.approx([0.1 + 0.4 * f for f in factors])


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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"warmup_factor": 0.5, "warmup_iters": 4}, [0.25, 0.3125, 0.375, 0.4375, 0.5, 0.5]),
        ({"warmup_factor": 0.5, "warmup_iters": 2, "warmup_method": "constant"}, [0.25, 0.25, 0.5, 0.5]),
        ({"warmup_factor": 0.0, "warmup_iters": 2}, [0.0, 0.25, 0.5]),
    ],
)
def test_warm_up_to_the_base_rate(options, expected):
    assert rates(schedules.WarmUpLR(sgd(), **options), len(expected)) == pytest.approx(expected)


def test_warm_up_meets_the_schedule_where_that_is():
    """The worked case of OneFlow's documentation: 0.0005, 0.00075, then the cosine at its steps 2 and 3."""
    optimizer = sgd(0.001)
    cosine = schedules.CosineDecayLR(optimizer, decay_steps=5, alpha=0.1)
    at_two = cosine.lr_at(0.001, 2)
    scheduler = schedules.WarmUpLR(cosine, warmup_factor=0.5, warmup_iters=2)
    expected = [0.0005, (0.0005 + at_two) / 2, at_two, cosine.lr_at(0.001, 3)]
    assert rates(scheduler, 4) == pytest.approx(expected)
    assert cosine.last_step == scheduler.last_step == 4


def test_warm_up_as_a_prefix_begins_the_schedule_after_it():
    optimizer = sgd()
    scheduler = schedules.WarmupLR(schedules.ExponentialLR(optimizer, 0.5), 0.2, 2, "linear", True)
    assert rates(scheduler, 5) == pytest.approx([0.1, 0.3, 0.5, 0.25, 0.125])


def test_a_sequence_shares_its_count_if_told_so():
    optimizer = sgd(1.0)
    parts = [schedules.ConstantLR(optimizer, 0.1, 2), schedules.ExponentialLR(optimizer, 0.9)]
    shared = schedules.SequentialLR(optimizer, parts, [2], interval_rescaling=False)
    assert rates(shared, 5) == pytest.approx([0.1, 0.1, 0.81, 0.729, 0.6561])
    own = schedules.SequentialLR(optimizer, parts, [2])
    assert rates(own, 5) == pytest.approx([0.1, 0.1, 1.0, 0.9, 0.81])


def test_warmup_cosine_rises_then_falls_to_its_end():
    factor = schedules.warmup_cosine(warmup=4, total=12, final=0.1)
    assert [factor(i) for i in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert factor(4) == 1.0 and factor(8) == pytest.approx(0.55) and factor(12) == pytest.approx(0.1)
    assert factor(1000) == pytest.approx(0.1)


def test_warmup_constant():
    factor = schedules.warmup_constant(2)
    assert [factor(i) for i in range(4)] == [0.5, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("factor", [1, 2])
def test_restarts_have_no_negative_step(factor):
    scheduler = schedules.CosineAnnealingWarmRestarts(sgd(), 10, factor)
    scheduler.step(4)
    with pytest.raises(ValueError, match="non-negative epoch"):
        scheduler.step(-1)
    assert scheduler.last_step == 4
