"""Schedules against PyTorch's, and their continuation."""

import pytest
import torch

import sbpjax as flow
from sbpjax import optim
from sbpjax.optim import lr_scheduler


def rates(package, make, steps=25):
    tensor = package.ones(2, requires_grad=True)
    optimizer = package.optim.SGD([tensor], lr=0.5)
    scheduler = make(package.optim.lr_scheduler, optimizer)
    seen = []
    for _ in range(steps):
        seen.append(scheduler.get_last_lr()[0])
        tensor.grad = package.ones(2)
        optimizer.step()
        scheduler.step()
    return seen


@pytest.mark.parametrize(
    "make",
    [
        lambda m, o: m.LambdaLR(o, lambda step: 0.9**step),
        lambda m, o: m.CosineAnnealingLR(o, T_max=10),
        lambda m, o: m.CosineAnnealingLR(o, T_max=7, eta_min=0.1),
    ],
    ids=["lambda", "cosine", "cosine-min"],
)
def test_equals_torch(make):
    assert rates(flow, make) == pytest.approx(rates(torch, make), rel=1e-12, abs=1e-12)


def test_warmup_cosine_rises_then_falls_to_its_end():
    factor = lr_scheduler.warmup_cosine(warmup=4, total=12, final=0.1)
    assert [factor(i) for i in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert factor(4) == 1.0 and factor(8) == pytest.approx(0.55) and factor(12) == pytest.approx(0.1)
    assert factor(1000) == pytest.approx(0.1)


def test_warmup_constant():
    factor = lr_scheduler.warmup_constant(2)
    assert [factor(i) for i in range(4)] == [0.5, 1.0, 1.0, 1.0]


def test_a_loaded_schedule_goes_on_where_it_was():
    def fresh():
        optimizer = optim.SGD([flow.ones(2, requires_grad=True)], lr=0.5)
        return optimizer, lr_scheduler.LambdaLR(optimizer, lr_scheduler.warmup_cosine(3, 20))

    whole, scheduler = fresh()
    for _ in range(7):
        scheduler.step()
    resumed, second = fresh()
    second.load_state_dict(scheduler.state_dict())
    assert resumed.param_groups[0]["lr"] == whole.param_groups[0]["lr"]
    scheduler.step()
    second.step()
    assert second.get_last_lr() == scheduler.get_last_lr()


def test_one_lambda_per_group():
    optimizer = optim.SGD([{"params": [flow.ones(1)]}, {"params": [flow.ones(1)]}], lr=1.0)
    scheduler = lr_scheduler.LambdaLR(optimizer, [lambda s: 1.0, lambda s: 0.5])
    assert scheduler.get_last_lr() == [1.0, 0.5]
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        lr_scheduler.LambdaLR(optimizer, [lambda s: 1.0])


def test_needs_an_optimizer():
    with pytest.raises(TypeError, match="is not an Optimizer"):
        lr_scheduler.CosineAnnealingLR("sgd", 10)
