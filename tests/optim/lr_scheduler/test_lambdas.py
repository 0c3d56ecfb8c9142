"""Schedules by a function of the step; factors of warm-ups."""

import pytest

from sbpjax.optim import lr_scheduler as schedules
from tests.optim.schedule_histories import assert_equals_torch

SCHEDULES = {
    "lambda": lambda m, o: m.LambdaLR(o, lambda step: 0.9**step),
    "lambdas": lambda m, o: m.LambdaLR(o, [lambda step: 0.9**step, lambda step: 1 / (step + 1)]),
    "multiplicative": lambda m, o: m.MultiplicativeLR(o, lambda step: 0.9 + 0.01 * (step % 3)),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_torch(name):
    assert_equals_torch(SCHEDULES[name])


def test_warmup_cosine_rises_then_falls_to_its_end():
    factor = schedules.warmup_cosine(warmup=4, total=12, final=0.1)
    assert [factor(i) for i in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert factor(4) == 1.0 and factor(8) == pytest.approx(0.55) and factor(12) == pytest.approx(0.1)
    assert factor(1000) == pytest.approx(0.1)


def test_warmup_constant():
    factor = schedules.warmup_constant(2)
    assert [factor(i) for i in range(4)] == [0.5, 1.0, 1.0, 1.0]
