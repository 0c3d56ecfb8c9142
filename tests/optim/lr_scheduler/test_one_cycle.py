"""`OneCycleLR`: one rise and one fall over all steps."""

import pytest

from sbpjax.optim import lr_scheduler as schedules
from tests.optim.schedule_histories import STEPS, assert_equals_torch, sgd

SCHEDULES = {
    "one-cycle": lambda m, o: m.OneCycleLR(o, 0.9, total_steps=STEPS),
    "one-cycle-linear": lambda m, o: m.OneCycleLR(
        o, [0.9, 0.3], epochs=5, steps_per_epoch=8, anneal_strategy="linear", pct_start=0.25, div_factor=10
    ),
    "one-cycle-three": lambda m, o: m.OneCycleLR(o, 0.9, total_steps=STEPS, three_phase=True, final_div_factor=100),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_torch(name):
    assert_equals_torch(SCHEDULES[name])


def test_momentum_of_adam_is_its_first_beta():
    ours = assert_equals_torch(SCHEDULES["one-cycle"], "Adam")
    assert ours[7][2] != ours[0][2]


def test_a_step_behind_the_end_of_one_cycle_is_an_error_and_changes_nothing():
    scheduler = schedules.OneCycleLR(sgd(momentum=0.9), 0.5, 3)
    for _ in range(3):
        scheduler.step()
    before = scheduler.state_dict()
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        scheduler.step()
    assert scheduler.state_dict() == before
