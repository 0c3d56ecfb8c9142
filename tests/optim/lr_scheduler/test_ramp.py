"""Schedules from one factor to another: constant, linear, polynomial."""

import pytest

from sbpjax.optim import lr_scheduler as schedules
from tests.optim.schedule_histories import assert_equals_torch, rates, sgd

SCHEDULES = {
    "constant": lambda m, o: m.ConstantLR(o, 0.25, 6),
    "constant-defaults": lambda m, o: m.ConstantLR(o),
    "linear": lambda m, o: m.LinearLR(o, 0.1, 0.6, 11),
    "linear-defaults": lambda m, o: m.LinearLR(o),
    "polynomial": lambda m, o: m.PolynomialLR(o, total_iters=13, power=2.0),
    "polynomial-defaults": lambda m, o: m.PolynomialLR(o),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_torch(name):
    assert_equals_torch(SCHEDULES[name])


def test_polynomial_has_an_end_rate_and_cycles():
    plain = schedules.PolynomialLR(sgd(), decay_batch=4, end_learning_rate=0.1, power=2.0)
    assert rates(plain, 6) == pytest.approx([0.1 + 0.4 * (1 - t / 4) ** 2 for t in (0, 1, 2, 3, 4, 4)])
    cycling = schedules.PolynomialLR(sgd(), 4, end_learning_rate=0.1, cycle=True)
    assert schedules.PolynomialLR(sgd(), decay_batch=4).lr_at(0.5, 9) == 0.0001
    factors = (1, 0.75, 0.5, 0.25, 0, 3 / 8, 0.25, 1 / 8, 0, 0.25)
    assert rates(cycling, 10) == pytest.approx([0.1 + 0.4 * f for f in factors])
