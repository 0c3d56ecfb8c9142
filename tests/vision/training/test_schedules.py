"""Schedules: timm's rates at every time; epochs and updates; groups; wrong numbers."""

import json

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import ConfigError
from sbpjax.vision import training
from tests.vision.training.record import BASE, DATA, SCHEDULES, TIMES

FACTS = json.loads(DATA.read_text())


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_of_timm(name):
    kind, _, options = SCHEDULES[name]
    rate = getattr(training, kind)(**options)
    np.testing.assert_allclose([rate(t, BASE) for t in range(TIMES)], FACTS[name], rtol=1e-12, atol=1e-15)


def test_epochs_updates_and_groups():
    groups = [{"params": [flow.nn.Parameter(flow.zeros(1))]} for _ in range(2)]
    groups[1] |= {"lr": 0.02, "lr_scale": 0.5}
    optimizer = flow.optim.SGD(groups, lr=0.1)
    rates = lambda: [group["lr"] for group in optimizer.param_groups]  # noqa: E731
    scheduled = training.ScheduleRunner(optimizer, training.Linear(10, warmup_t=2, warmup_lr_init=0.01))
    assert rates() == [0.01, 0.005]
    scheduled.step(5)
    np.testing.assert_allclose(rates(), [0.05, 0.005])
    scheduled.step_update(9)  # its times are epochs
    np.testing.assert_allclose(rates(), [0.05, 0.005])
    by_updates = training.ScheduleRunner(optimizer, training.Linear(10), t_in_epochs=False)
    by_updates.step(3)
    by_updates.step_update(9)
    np.testing.assert_allclose(rates(), [0.01, 0.001])
    again = training.ScheduleRunner(optimizer, training.Linear(10))
    again.load_state_dict(scheduled.state_dict())
    again.step(5)
    np.testing.assert_allclose(rates(), [0.05, 0.005])


def test_lengths_and_wrong_numbers():
    assert training.Cosine(10, cycle_mul=2.0, cycle_limit=3).length() == 70
    assert training.Cosine(10, cycle_limit=3, warmup_t=5, warmup_prefix=True).length() == 35
    with pytest.raises(ConfigError, match="t_initial is 1 or more"):
        training.Cosine(0)
    with pytest.raises(ConfigError, match="times and rates are 0 or more"):
        training.Step(3, warmup_t=-1)
