"""`optim.repeat`: a step that comes again gathers nothing, and one that does not is seen to be another."""

import copy

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.optim.optimizer import Optimizer


def pair(lib):
    """Two parameters of known values and an Adam over them."""
    params = [lib.nn.Parameter(lib.tensor(np.linspace(-1, 1, n, dtype=np.float32))) for n in (4, 6)]
    return params, lib.optim.Adam([{"params": params[:1]}, {"params": params[1:], "lr": 0.05}], lr=0.1)


def take_step(params, optimizer, *, without=()):
    for i, p in enumerate(params):
        p.grad = None if i in without else p.detach() * 2 + 1
    optimizer.step()


def slower(params, optimizer):
    optimizer.param_groups[0]["lr"] = 0.01


def other_options(params, optimizer):
    optimizer.param_groups[1]["betas"] = (0.5, 0.9)


def other_values(params, optimizer):
    params[0].data = params[0].data * 3


def written(params, optimizer):
    params[0].detach().add_(1.0)


def through_a_view(params, optimizer):
    params[1].detach()[2:].mul_(2.0)


def other_moment(params, optimizer):
    optimizer.state[params[0]]["exp_avg"] = optimizer.state[params[0]]["exp_avg"] * 0 + 0.5


def moment_written(params, optimizer):
    optimizer.state[params[0]]["exp_avg_sq"].mul_(4.0)


def reloaded(params, optimizer):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


BETWEEN = [slower, other_options, other_values, written, through_a_view, other_moment, moment_written, reloaded]


@pytest.mark.parametrize("between", BETWEEN, ids=lambda f: f.__name__)
def test_what_happens_between_two_steps_is_seen(between):
    results = []
    for lib in (flow, torch):
        params, optimizer = pair(lib)
        for _ in range(3):
            take_step(params, optimizer)
        with lib.no_grad():
            between(params, optimizer)
        for without in ((), (), (1,), (1,), ()):
            take_step(params, optimizer, without=without)
        results.append([p.detach().numpy() for p in params])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-7)


def test_equal_steps_gather_once_more_and_never_again(monkeypatch):
    gathered = []
    gather = Optimizer._gather_updates
    monkeypatch.setattr(Optimizer, "_gather_updates", lambda self: gathered.append(self) or gather(self))
    params, optimizer = pair(flow)
    for _ in range(6):
        take_step(params, optimizer)
    assert len(gathered) == 2  # the first step made the state, which the second had to look at
    slower(params, optimizer)
    take_step(params, optimizer)
    assert len(gathered) == 2
    other_options(params, optimizer)
    take_step(params, optimizer)
    assert len(gathered) == 3


def test_a_copy_steps_its_own_parameters():
    params, optimizer = pair(flow)
    for _ in range(3):
        take_step(params, optimizer)
    before = [p.numpy().copy() for p in params]
    twins, twin = copy.deepcopy((params, optimizer))
    take_step(twins, twin)
    for p, value, moved in zip(params, before, twins):
        np.testing.assert_array_equal(p.numpy(), value)
        assert (moved.numpy() != value).all()
