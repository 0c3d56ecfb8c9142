"""`ReduceLROnPlateau`: the rate falls when a metric stops improving."""

import pytest
import torch

import sbpjax as flow
from sbpjax.optim import lr_scheduler as schedules
from tests.optim.schedule_histories import sgd

METRICS = [5.0, 4.0, 4.0, 4.0, 4.0, 4.0, 3.9999, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 9.0, 9.0, 9.0, 2.0, 2.0, 2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"patience": 1, "cooldown": 2, "factor": 0.5},
        {"patience": 0, "threshold": 0.5, "threshold_mode": "abs", "min_lr": 0.15},
        {"mode": "max", "patience": 3, "min_lr": [0.01, 0.002]},
        {"mode": "max", "patience": 1, "threshold_mode": "abs", "eps": 0.05},
    ],
    ids=str,
)
def test_plateau_equals_torch(options):
    seen = []
    for package in (flow, torch):
        first, second = package.ones(2, requires_grad=True), package.ones(3, requires_grad=True)
        optimizer = package.optim.SGD([{"params": [first]}, {"params": [second], "lr": 0.2}], lr=0.5)
        scheduler = package.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for metric in METRICS:
            scheduler.step(package.tensor(metric))
            rates.append([group["lr"] for group in optimizer.param_groups])
            assert scheduler.get_last_lr() == rates[-1]
        seen.append((rates, scheduler.num_bad_epochs, scheduler.best))
    assert seen[0][0][-1] != [0.5, 0.2]
    assert seen[0] == seen[1]


def test_a_loaded_plateau_goes_on_where_it_was():
    whole, resumed = (schedules.ReduceLROnPlateau(sgd(), patience=1, cooldown=1) for _ in range(2))
    for _ in range(4):
        whole.step(1.0)
    resumed.load_state_dict(whole.state_dict())
    for metric in (1.0, 1.0, 0.5, 1.0, 1.0):
        whole.step(metric)
        resumed.step(metric)
        assert resumed.get_last_lr() == whole.get_last_lr() == [resumed.optimizer.param_groups[0]["lr"]]
    assert whole.get_last_lr()[0] < 0.05
