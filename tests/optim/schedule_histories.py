"""Rates and momenta of a schedule, step by step, and PyTorch's for the same."""

import pytest
import torch

import sbpjax as flow
from sbpjax import optim

STEPS = 40
TOLERANCE = 1e-12  # PyTorch multiplies step by step what is a closed form here: some units in the last place


def sgd(lr=0.5, groups=1, **options):
    return optim.SGD([{"params": [flow.ones(2, requires_grad=True)]} for _ in range(groups)], lr=lr, **options)


def rates(scheduler, steps):
    seen = []
    for _ in range(steps):
        seen.append(scheduler.get_last_lr()[0])
        scheduler.step()
    return seen


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


def assert_equals_torch(make, kind="SGD"):
    """Assert that rates and momenta equal PyTorch's, and return them."""
    ours, theirs = (history(package, make, kind) for package in (flow, torch))
    for step, (mine, other) in enumerate(zip(ours, theirs)):
        assert mine == pytest.approx(other, rel=TOLERANCE, abs=TOLERANCE), f"step {step}"
    return ours
