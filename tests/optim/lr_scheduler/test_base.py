"""Schedules as pure functions of the step, users' own, their state, and errors."""

import pytest
import torch

import sbpjax as flow
from sbpjax.optim import lr_scheduler as schedules
from tests.optim.lr_scheduler import test_cosine, test_lambdas, test_ramp, test_steps
from tests.optim.schedule_histories import TOLERANCE, rates, sgd

ALL = {
    "step": lambda o: schedules.StepLR(o, 3),
    "multi": lambda o: schedules.MultiStepLR(o, [2, 5]),
    "exponential": lambda o: schedules.ExponentialLR(o, 0.9),
    "constant": lambda o: schedules.ConstantLR(o),
    "linear": lambda o: schedules.LinearLR(o),
    "polynomial": lambda o: schedules.PolynomialLR(o, 8),
    "cosine": lambda o: schedules.CosineAnnealingLR(o, 6),
    "decay": lambda o: schedules.CosineDecayLR(o, 6),
    "restarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 2, 2),
    "cyclic": lambda o: schedules.CyclicLR(o, 0.1, 0.5, 3),
    "one-cycle": lambda o: schedules.OneCycleLR(o, 0.5, 30),
    "lambda": lambda o: schedules.LambdaLR(o, lambda t: 0.9**t),
    "multiplicative": lambda o: schedules.MultiplicativeLR(o, lambda t: 0.9),
    "warm-up": lambda o: schedules.WarmUpLR(schedules.CosineDecayLR(o, 20), 0.1, 4),
    "sequence": lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o), schedules.ExponentialLR(o, 0.9)], [4]),
    "chain": lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o), schedules.ExponentialLR(o, 0.9)]),
}


@pytest.mark.parametrize("name", ALL)
def test_the_rate_is_a_function_of_the_step(name):
    scheduler = ALL[name](sgd(momentum=0.9))
    base = scheduler.base_lrs[0]
    for step in range(15):
        assert scheduler.last_step == scheduler.last_epoch == step
        assert scheduler.get_last_lr() == scheduler.get_lr() == [scheduler.lr_at(base, step)]
        assert scheduler.optimizer.param_groups[0]["lr"] == scheduler.lr_at(base, step)
        scheduler.step()
    there = scheduler.lr_at(base, 4)
    scheduler.step(4)
    assert (scheduler.last_step, scheduler.get_last_lr()) == (4, [there])


@pytest.mark.parametrize("name", ALL)
def test_a_loaded_schedule_goes_on_where_it_was(name):
    whole = ALL[name](sgd(momentum=0.9))
    for _ in range(7):
        whole.step()
    saved = whole.state_dict()
    resumed = ALL[name](sgd(lr=0.25, momentum=0.9))
    resumed.load_state_dict(saved)
    assert resumed.optimizer.param_groups[0]["lr"] == whole.optimizer.param_groups[0]["lr"]
    assert saved == whole.state_dict() == resumed.state_dict()
    assert rates(resumed, 12) == rates(whole, 12)


def test_users_schedules_may_be_written_as_in_oneflow_or_as_in_pytorch():
    class OneFlows(schedules.LRScheduler):
        def get_lr(self, base_lr, step):
            return base_lr / (step + 1)

    class PyTorchs(schedules.LRScheduler):
        def get_lr(self):
            return [base / (self.last_epoch + 1) for base in self.base_lrs]

    class Ours(schedules.LRScheduler):
        def lr_at(self, base_lr, step, group=0):
            return base_lr / (step + 1)

    for kind in (OneFlows, PyTorchs, Ours):
        assert rates(kind(sgd(1.0)), 3) == [1, 1 / 2, 1 / 3]


def test_a_second_schedule_starts_from_the_initial_rate():
    optimizer = sgd()
    schedules.ConstantLR(optimizer, 0.1)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)
    assert schedules.ExponentialLR(optimizer, 0.9).base_lrs == [0.5]


def test_resuming_needs_the_initial_rate():
    with pytest.raises(KeyError, match=r"'initial_lr' is not specified in param_groups\[0\]"):
        schedules.StepLR(sgd(), 3, last_epoch=4)
    optimizer = sgd()
    optimizer.param_groups[0]["initial_lr"] = 0.5
    assert schedules.StepLR(optimizer, 3, last_step=5).get_last_lr() == pytest.approx([0.05])  # 0.1 of what is there
    assert schedules.StepLR(optimizer, 3, last_step=6).get_last_lr() == pytest.approx([0.05])


def test_verbose_prints_every_new_rate(capsys):
    schedules.ExponentialLR(sgd(), 0.5, verbose=True).step()
    assert capsys.readouterr().out.splitlines()[1] == "Last step 1 adjusting learning rate of param_groups[0] to 0.25"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda o: schedules.CosineAnnealingLR("sgd", 10), TypeError, "str is not an Optimizer"),
        (lambda o: schedules.WarmUpLR("sgd"), TypeError, "must be a LRScheduler or an Optimizer"),
        (lambda o: schedules.StepLR(o, 0), ValueError, "step_size must be positive, but got 0"),
        (lambda o: schedules.MultiStepLR(o, []), ValueError, "milestones must not be empty"),
        (lambda o: schedules.ConstantLR(o, 1.5), ValueError, "between 0 and 1"),
        (lambda o: schedules.LinearLR(o, end_factor=-0.5), ValueError, "Ending multiplicative factor"),
        (lambda o: schedules.PolynomialLR(o, 0), ValueError, "total_iters must be positive"),
        (lambda o: schedules.CosineDecayLR(o, 0), ValueError, "decay_steps must be positive"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 0), ValueError, "Expected positive integer T_0"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 5, 1.5), ValueError, "Expected integer T_mult >= 1"),
        (lambda o: schedules.CyclicLR(o, 0.1, 0.2, mode="saw"), ValueError, "mode is invalid"),
        (lambda o: schedules.CyclicLR(o, [0.1, 0.1], 0.2), ValueError, "Expected 1 base_lrs, but got 2"),
        (lambda o: schedules.OneCycleLR(o, 0.1), ValueError, "either total_steps OR both epochs"),
        (lambda o: schedules.OneCycleLR(o, 0.1, 10, anneal_strategy="sin"), ValueError, "one of 'cos' or 'linear'"),
        (lambda o: schedules.OneCycleLR(o, 0.1, 10, pct_start=2), ValueError, "between 0 and 1 pct_start"),
        (lambda o: schedules.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda o: schedules.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda o: schedules.ReduceLROnPlateau(o).step(), ValueError, "needs the value that it watches"),
        (lambda o: schedules.ChainedScheduler([]), ValueError, "at least one scheduler"),
        (lambda o: schedules.ChainedScheduler([schedules.ReduceLROnPlateau(o)]), ValueError, "of the step alone"),
        (lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o)], [3]), ValueError, "one more than the number"),
        (lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(sgd())], []), ValueError, "the same optimizer"),
        (lambda o: schedules.WarmUpLR(o, warmup_method="cosine"), ValueError, "'linear' or 'constant'"),
        (lambda o: schedules.WarmUpLR(o, warmup_iters=0), ValueError, "can't be equal to 0"),
    ],
)
def test_bad_arguments(make, error, text):
    with pytest.raises(error, match=text) as caught:
        make(sgd(momentum=0.9))
    assert all(part in str(caught.value) for part in ("  seen: ", "  rule: ", "  fix:  "))


@pytest.mark.parametrize("name", ["step", "chain"])
def test_a_foreign_state_is_refused_and_changes_nothing(name):
    scheduler = ALL[name](sgd())
    good = scheduler.state_dict()
    scheduler.step()
    before = scheduler.state_dict()
    bad = [good | {"gama": 1}, {k: v for k, v in good.items() if k != "last_step"}, good | {"base_lrs": [1.0, 2.0]}]
    if name == "chain":
        bad += [good | {"schedulers": good["schedulers"][:1]}, good | {"schedulers": [good["schedulers"][0], {}]}]
    for state in bad:
        with pytest.raises(ValueError, match="load_state_dict"):
            scheduler.load_state_dict(state)
        assert scheduler.state_dict() == before


SCHEDULES = {**test_cosine.SCHEDULES, **test_lambdas.SCHEDULES, **test_ramp.SCHEDULES, **test_steps.SCHEDULES}
FACTORS = ("step", "multi-step", "exponential", "constant", "linear", "polynomial", "cosine", "cosine-min", "lambda")


@pytest.mark.parametrize("second", ["linear", "multi-step", "multiplicative", "cosine-min", "lambda"])
@pytest.mark.parametrize("first", FACTORS)
def test_two_schedules_in_turn_equal_torch(first, second):
    seen = []
    for package in (flow, torch):
        optimizer = package.optim.SGD([package.ones(2, requires_grad=True)], lr=0.5)
        both = [SCHEDULES[name](package.optim.lr_scheduler, optimizer) for name in (first, second)]
        rates = []
        for step in range(16):
            optimizer.step()
            if step == 8:
                optimizer.param_groups[0]["lr"] = 0.3
            for scheduler in both:
                scheduler.step()
                rates.append(optimizer.param_groups[0]["lr"])
        seen.append(rates)
    assert seen[0] == pytest.approx(seen[1], rel=1e-9, abs=TOLERANCE)
