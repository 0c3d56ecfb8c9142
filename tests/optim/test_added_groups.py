"""Parameter groups that are added under a schedule: moved as PyTorch moves them, or refused where PyTorch raises."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn

RTOL = 1e-9
S, T = flow.optim.lr_scheduler, torch.optim.lr_scheduler
MOVED = {
    "StepLR": lambda L, o: L.StepLR(o, 2),
    "MultiStepLR": lambda L, o: L.MultiStepLR(o, [2, 4]),
    "ConstantLR": lambda L, o: L.ConstantLR(o, total_iters=5),
    "LinearLR": lambda L, o: L.LinearLR(o, total_iters=8),
    "ExponentialLR": lambda L, o: L.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda L, o: L.PolynomialLR(o, 10, power=2.0),
    "CosineAnnealingLR": lambda L, o: L.CosineAnnealingLR(o, 10, eta_min=0.01),
    "ChainedScheduler": lambda L, o: L.ChainedScheduler([L.ConstantLR(o, total_iters=5), L.ExponentialLR(o, 0.9)]),
    "ReduceLROnPlateau": lambda L, o: L.ReduceLROnPlateau(o, patience=0, min_lr=1e-4),
}
REFUSED = {
    "LambdaLR": lambda L, o: L.LambdaLR(o, lambda step: 0.9**step),
    "MultiplicativeLR": lambda L, o: L.MultiplicativeLR(o, lambda step: 0.9),
    "CyclicLR": lambda L, o: L.CyclicLR(o, 0.01, 0.1, step_size_up=3, cycle_momentum=False),
    "OneCycleLR": lambda L, o: L.OneCycleLR(o, 0.1, total_steps=20, cycle_momentum=False),
    "CosineAnnealingWarmRestarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 5),
}
OWN = {
    "CosineDecayLR": lambda L, o: L.CosineDecayLR(o, 10, 0.1),
    "SequentialLR": lambda L, o: L.SequentialLR(o, [L.LinearLR(o, 0.5, total_iters=4), L.ExponentialLR(o, 0.9)], [4]),
    "WarmUpLR": lambda L, o: L.WarmUpLR(L.ExponentialLR(o, 0.9), 0.1, 5),
}


def parameters(library, seed=0):
    return list(library.nn.Linear(3, 2).parameters())


def step(scheduler):
    scheduler.optimizer.step()
    scheduler.step(*[1.0] if "Plateau" in type(scheduler).__name__ else [])


def rates(library, L, make, before, after):
    optimizer = library.optim.SGD(parameters(library), lr=0.1)
    scheduler = make(L, optimizer)
    for _ in range(before):
        step(scheduler)
    optimizer.add_param_group({"params": parameters(library), "lr": 0.5})
    found = []
    for _ in range(after):
        step(scheduler)
        found.append([group["lr"] for group in optimizer.param_groups])
    return found


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("name", MOVED)
def test_a_new_group_moves_as_in_pytorch(name, before):
    ours, theirs = rates(flow, S, MOVED[name], before, 6), rates(torch, T, MOVED[name], before, 6)
    np.testing.assert_allclose(ours, theirs, rtol=RTOL)


@pytest.mark.parametrize("name", REFUSED)
def test_a_schedule_by_groups_refuses_another_one(name):
    for library, L in ((torch, T), (flow, S)):
        with pytest.raises((ValueError, KeyError)) as raised:
            rates(library, L, REFUSED[name], 2, 1)
    text = str(raised.value)
    assert f"make it anew after add_param_group: {name}(optimizer, ..., last_epoch=2)" in text and "2 parameter" in text


@pytest.mark.parametrize("name", OWN)
def test_a_new_group_keeps_its_ratio(name):
    for old, new in rates(flow, S, OWN[name], 2, 8):
        assert new / old == pytest.approx(rates(flow, S, OWN[name], 2, 1)[0][1] / rates(flow, S, OWN[name], 2, 1)[0][0])


def test_one_within_another_refuses_too():
    make = lambda L, o: L.SequentialLR(o, [L.LinearLR(o), L.LambdaLR(o, lambda step: 1.0)], [4])  # noqa: E731
    with pytest.raises(ValueError, match="a function for each group"):
        rates(flow, S, make, 2, 1)


def test_bounds_by_group_of_a_plateau():
    with pytest.raises(ValueError, match="a min_lr for each group"):
        rates(flow, S, lambda L, o: L.ReduceLROnPlateau(o, min_lr=[0.1]), 1, 1)


@pytest.mark.parametrize("name", [*MOVED, *OWN])
@pytest.mark.parametrize("at_once", [True, False])
def test_the_state_goes_on_with_the_new_group(name, at_once):
    make = (MOVED | OWN)[name]

    def optimizer_of(groups):
        optimizer = flow.optim.SGD(parameters(flow), lr=0.1)
        for _ in range(groups - 1):
            optimizer.add_param_group({"params": parameters(flow), "lr": 0.5})
        return optimizer

    scheduler = make(S, optimizer_of(1))
    for _ in range(2):
        step(scheduler)
    scheduler.optimizer.add_param_group({"params": parameters(flow), "lr": 0.5})
    if not at_once:
        step(scheduler)
    resumed = make(S, optimizer_of(2))
    resumed.load_state_dict(scheduler.state_dict())
    resumed.optimizer.load_state_dict(scheduler.optimizer.state_dict())
    for _ in range(4):
        for one in (scheduler, resumed):
            step(one)
        got, want = ([g["lr"] for g in one.optimizer.param_groups] for one in (resumed, scheduler))
        np.testing.assert_allclose(got, want, rtol=RTOL)


class Halved(S.LRScheduler):
    def get_lr(self):
        return [group["lr"] / 2 for group in self.optimizer.param_groups]


class Short(S.LRScheduler):
    def get_lr(self):
        return [0.1]


def test_schedules_of_users():
    assert [new for _, new in rates(flow, S, lambda L, o: Halved(o), 1, 2)] == [0.25, 0.125]
    with pytest.raises(ValueError, match="1 rates for 2 parameter groups"):
        rates(flow, S, lambda L, o: Short(o), 1, 1)


def test_a_schedule_that_a_graph_steps_moves_the_new_group():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    optimizer = flow.optim.SGD(model[0].parameters(), lr=0.1)
    scheduler = S.ExponentialLR(optimizer, 0.5)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer, lr_sch=scheduler)

        def build(self, x):
            loss = self.model(x).square().mean()
            loss.backward()
            return loss

    first = Train()
    first(flow.ones(2, 3))
    optimizer.add_param_group({"params": list(model[1].parameters()), "lr": 0.5})
    before = model[1].weight.numpy().copy()
    Train()(flow.ones(2, 3))
    assert optimizer.param_groups[1]["lr"] == pytest.approx(0.25)
    assert (model[1].weight.numpy() != before).any()
