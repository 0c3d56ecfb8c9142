"""Schedules against PyTorch's, rate by rate and momentum by momentum.

Source: `base`, `lambdas`, `cyclic`, `one_cycle` and `plateau` of `optim/lr_scheduler/`.
"""

import pytest
import torch

import sbpjax as flow

STEPS = 40
TOLERANCE = 1e-12  # PyTorch multiplies step by step what is a closed form here: some units in the last place


def history(package, make, kind="SGD", steps=STEPS, **options):
    """Return the rates and momenta of two groups, step by step."""
    first, second = package.ones(2, requires_grad=True), package.ones(3, requires_grad=True)
    options = options or {"momentum": 0.9} if kind == "SGD" else options
    optimizer = getattr(package.optim, kind)([{"params": [first]}, {"params": [second], "lr": 0.2}], lr=0.5, **options)
    scheduler = make(package.optim.lr_scheduler, optimizer)
    seen = []
    for _ in range(steps):
        momenta = [g["momentum"] if "momentum" in g else g["betas"][0] for g in optimizer.param_groups]
        assert [g["lr"] for g in optimizer.param_groups] == scheduler.get_last_lr()
        seen.append([*scheduler.get_last_lr(), *momenta])
        for tensor in (first, second):
            tensor.grad = package.ones_like(tensor)
        optimizer.step()
        scheduler.step()
    return seen


SCHEDULES = {
    "lambda": lambda m, o: m.LambdaLR(o, lambda step: 0.9**step),
    "lambdas": lambda m, o: m.LambdaLR(o, [lambda step: 0.9**step, lambda step: 1 / (step + 1)]),
    "multiplicative": lambda m, o: m.MultiplicativeLR(o, lambda step: 0.9 + 0.01 * (step % 3)),
    "step": lambda m, o: m.StepLR(o, 7, 0.3),
    "multi-step": lambda m, o: m.MultiStepLR(o, [3, 9, 9, 20], gamma=0.5),
    "exponential": lambda m, o: m.ExponentialLR(o, 0.95),
    "constant": lambda m, o: m.ConstantLR(o, 0.25, 6),
    "constant-defaults": lambda m, o: m.ConstantLR(o),
    "linear": lambda m, o: m.LinearLR(o, 0.1, 0.6, 11),
    "linear-defaults": lambda m, o: m.LinearLR(o),
    "polynomial": lambda m, o: m.PolynomialLR(o, total_iters=13, power=2.0),
    "polynomial-defaults": lambda m, o: m.PolynomialLR(o),
    "cosine": lambda m, o: m.CosineAnnealingLR(o, T_max=10),
    "cosine-min": lambda m, o: m.CosineAnnealingLR(o, T_max=7, eta_min=0.1),
    "restarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 5),
    "restarts-longer": lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, T_mult=3, eta_min=0.01),
    "cyclic": lambda m, o: m.CyclicLR(o, 0.1, 0.6, step_size_up=4, step_size_down=7),
    "cyclic-groups": lambda m, o: m.CyclicLR(
        o, [0.1, 0.2], [0.6, 0.3], 5, mode="triangular2", base_momentum=[0.7, 0.6], max_momentum=[0.8, 0.9]
    ),
    "cyclic-exp": lambda m, o: m.CyclicLR(o, 0.1, 0.6, 5, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "cyclic-fn": lambda m, o: m.CyclicLR(o, 0.1, 0.6, 5, scale_fn=lambda x: 0.8 ** (x * 0.1), scale_mode="iterations"),
    "one-cycle": lambda m, o: m.OneCycleLR(o, 0.9, total_steps=STEPS),
    "one-cycle-linear": lambda m, o: m.OneCycleLR(
        o, [0.9, 0.3], epochs=5, steps_per_epoch=8, anneal_strategy="linear", pct_start=0.25, div_factor=10
    ),
    "one-cycle-three": lambda m, o: m.OneCycleLR(o, 0.9, total_steps=STEPS, three_phase=True, final_div_factor=100),
    "sequence": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o, 0.1, 100), m.ExponentialLR(o, 0.9), m.CosineAnnealingLR(o, 12)], [5, 17]
    ),
    "chained": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 4), m.ExponentialLR(o, 0.9)]),
    "chained-three": lambda m, o: m.ChainedScheduler(
        [m.LinearLR(o, 0.2, 1.0, 6), m.StepLR(o, 10), m.MultiStepLR(o, [5, 25])], optimizer=o
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_torch(name):
    ours, theirs = (history(package, SCHEDULES[name]) for package in (flow, torch))
    for step, (mine, other) in enumerate(zip(ours, theirs)):
        assert mine == pytest.approx(other, rel=TOLERANCE, abs=TOLERANCE), f"step {step}"


@pytest.mark.parametrize("name", ["cyclic", "one-cycle"])
def test_momentum_of_adam_is_its_first_beta(name):
    ours, theirs = (history(package, SCHEDULES[name], "Adam") for package in (flow, torch))
    assert ours[7][2] != ours[0][2]
    for mine, other in zip(ours, theirs):
        assert mine == pytest.approx(other, rel=TOLERANCE)


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
