"""Clipping by group: norms per group, none where no bound is given, the bound an input of a compiled step."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn, optim

TOLERANCE = 2e-6  # a few units in the last place of float32


def values(seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((8, 4), (4,), (4, 4))]


def setting(sbp=None, bounds=(0.5, 2.0)):
    params = [flow.tensor(v) for v in values(0)]
    if sbp is not None:
        params = [p.to_global(flow.placement("cpu", [0, 1, 2, 3]), sbp) for p in params]
    params = [nn.Parameter(p) for p in params]
    groups = [
        {"params": params[:2], "clip_grad_max_norm": bounds[0], "clip_grad_norm_type": 2.0},
        {"params": params[2:], "clip_grad_max_norm": bounds[1], "clip_grad_norm_type": float("inf"), "lr": 0.3},
    ]
    return params, optim.SGD(groups, lr=0.1)


def expected(steps, bounds=(0.5, 2.0)):
    params = [torch.nn.Parameter(torch.tensor(v)) for v in values(0)]
    reference = torch.optim.SGD([{"params": params[:2]}, {"params": params[2:], "lr": 0.3}], lr=0.1)
    for step in range(steps):
        for param, value in zip(params, values(step + 1)):
            param.grad = torch.tensor(value)
        torch.nn.utils.clip_grad_norm_(params[:2], bounds[0])
        torch.nn.utils.clip_grad_norm_(params[2:], bounds[1], float("inf"))
        reference.step()
    return [p.detach().numpy() for p in params]


@pytest.mark.parametrize("sbp", [None, "B", "S0"])
def test_every_group_has_its_own_norm(sbp):
    params, optimizer = setting(sbp)
    assert optimizer.clips
    for step in range(3):
        for param, value in zip(params, values(step + 1)):
            grad = flow.tensor(value)
            param.grad = grad if sbp is None else grad.to_global(param.placement, param.sbp)
        optimizer.clip_grad()
        optimizer.step()
    for param, value in zip(params, expected(3)):
        np.testing.assert_allclose(param.detach().numpy(), value, rtol=TOLERANCE, atol=TOLERANCE)


def test_a_group_without_a_bound_is_left_alone():
    params, optimizer = setting(bounds=(0.5, None))
    for param, value in zip(params, values(1)):
        param.grad = flow.tensor(value)
    optimizer.clip_grad()
    assert np.sqrt(sum((p.grad.numpy() ** 2).sum() for p in params[:2])) == pytest.approx(0.5, rel=1e-5)
    np.testing.assert_array_equal(params[2].grad.numpy(), values(1)[2])


def test_nothing_to_clip_is_a_warning():
    optimizer = optim.SGD([nn.Parameter(flow.ones(2))])
    assert not optimizer.clips
    with pytest.warns(UserWarning, match="no parameter group has clip_grad_max_norm"):
        optimizer.clip_grad()


def test_a_non_finite_norm_is_an_error_if_asked_for():
    params, optimizer = setting()
    for param, value in zip(params, values(1)):
        param.grad = flow.tensor(value * np.float32(np.inf))
    with pytest.raises(RuntimeError, match="non-finite"):
        optimizer.clip_grad(error_if_nonfinite=True)


@pytest.mark.parametrize("sbp", [None, "B"])
def test_the_bound_is_an_input_of_a_compiled_step(sbp, compilations):
    results = []
    for compiled in (False, True):
        params, optimizer = setting(sbp)

        def step(x, params=params, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((x @ params[0] + params[1]) @ params[2]).sum()
            loss.backward()
            optimizer.clip_grad()
            optimizer.step()
            return loss.detach()

        run = flow.compile(step, state=(params, optimizer)) if compiled else step
        x = flow.tensor(np.random.default_rng(9).standard_normal((4, 8)).astype(np.float32))
        x = x if sbp is None else x.to_global(params[0].placement, flow.sbp.broadcast)
        run(x)
        run(x)
        optimizer.param_groups[0]["clip_grad_max_norm"] = 0.25
        with compilations as made:
            run(x)
        assert made.count == 0
        results.append([p.detach().numpy() for p in params])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_raising_on_a_norm_is_not_for_compiled_steps():
    params, optimizer = setting()

    def step(x):
        (x @ params[0] + params[1]).sum().backward()
        optimizer.clip_grad(error_if_nonfinite=True)

    with pytest.raises(RuntimeError, match="error_if_nonfinite"):
        flow.compile(step, state=(params, optimizer))(flow.ones(4, 8))
