"""`WarmUpLR`: a rise to the first rate of another schedule."""

import pytest

from sbpjax.optim import lr_scheduler as schedules
from tests.optim.schedule_histories import rates, sgd


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
