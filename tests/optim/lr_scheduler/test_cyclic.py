"""`CyclicLR`: rates and momenta between two bounds."""

import pytest

import sbpjax as flow
from sbpjax import optim
from sbpjax.optim import lr_scheduler as schedules
from tests.optim.schedule_histories import assert_equals_torch

SCHEDULES = {
    "cyclic": lambda m, o: m.CyclicLR(o, 0.1, 0.6, step_size_up=4, step_size_down=7),
    "cyclic-groups": lambda m, o: m.CyclicLR(
        o, [0.1, 0.2], [0.6, 0.3], 5, mode="triangular2", base_momentum=[0.7, 0.6], max_momentum=[0.8, 0.9]
    ),
    "cyclic-exp": lambda m, o: m.CyclicLR(o, 0.1, 0.6, 5, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "cyclic-fn": lambda m, o: m.CyclicLR(o, 0.1, 0.6, 5, scale_fn=lambda x: 0.8 ** (x * 0.1), scale_mode="iterations"),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_torch(name):
    assert_equals_torch(SCHEDULES[name])


def test_momentum_of_adam_is_its_first_beta():
    ours = assert_equals_torch(SCHEDULES["cyclic"], "Adam")
    assert ours[7][2] != ours[0][2]


def test_cycled_momentum_needs_an_optimizer_that_has_one():
    optimizer = optim.Adagrad([flow.ones(2, requires_grad=True)]) if hasattr(optim, "Adagrad") else None
    if optimizer is not None:
        with pytest.raises(ValueError, match="must support momentum or beta1"):
            schedules.CyclicLR(optimizer, 0.1, 0.2)
