"""Master weights: the update runs in float32, the parameter is what the master rounds to, eager and compiled."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn, optim

STEPS = 20
TOLERANCE = 2e-6  # a few units in the last place of float32
KINDS = {
    "sgd": lambda m, p: m.SGD(p, lr=1e-3, momentum=0.9, weight_decay=0.01),
    "adamw": lambda m, p: m.AdamW(p, lr=1e-3),
    "rmsprop": lambda m, p: m.RMSprop(p, lr=1e-3, eps=1e-16),
}


def values(seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((8, 4), (4,))]


def rounded(array):
    return torch.tensor(array).bfloat16().float().numpy()


def make(layout, dtype=flow.bfloat16):
    params = [flow.tensor(v) for v in values(0)]
    if layout is not None:
        params = [p.to_global(flow.placement("cpu", [0, 1, 2, 3]), sbp) for p, sbp in zip(params, layout)]
    return [nn.Parameter(p.to(dtype)) for p in params]


def give(params, seed):
    for param, value in zip(params, values(seed)):
        grad = flow.tensor(value).to(param.dtype)
        param.grad = grad.to_global(param.placement, param.sbp) if param.is_global else grad


@pytest.mark.parametrize("layout", [None, ["B", "S0"], ["S0", "B"]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch_in_float32(kind, layout):
    params = make(layout)
    optimizer = KINDS[kind](optim, params)
    optimizer.use_master_weights()
    theirs = [torch.nn.Parameter(torch.tensor(rounded(v))) for v in values(0)]
    reference = KINDS[kind](torch.optim, theirs)
    for step in range(STEPS):
        give(params, step + 1)
        for param, value in zip(theirs, values(step + 1)):
            param.grad = torch.tensor(rounded(value))
        optimizer.step()
        reference.step()
    for param, other in zip(params, theirs):
        state = optimizer.state[param]
        assert param.dtype == flow.bfloat16
        assert all(t.dtype == flow.float32 for name, t in state.items() if name != "step")
        np.testing.assert_allclose(state["master"].numpy(), other.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)
        np.testing.assert_array_equal(param.detach().float().numpy(), rounded(state["master"].numpy()))
        assert layout is None or state["master"].sbp == param.sbp


def test_steps_below_the_resolution_of_the_parameter_add_up():
    plain, kept = (nn.Parameter(flow.ones(4, dtype=flow.bfloat16)) for _ in range(2))
    optimizers = [optim.SGD([p], lr=1e-3) for p in (plain, kept)]
    optimizers[1].use_master_weights()
    for _ in range(50):
        for param, optimizer in zip((plain, kept), optimizers):
            param.grad = flow.ones(4, dtype=flow.bfloat16)
            optimizer.step()
    assert plain.tolist() == [1.0] * 4  # 1 - 0.001 rounds to 1 every time
    assert kept.tolist() == pytest.approx([0.95] * 4, abs=2**-9)


def test_a_parameter_that_the_user_wrote_is_taken_over():
    param = nn.Parameter(flow.ones(4, dtype=flow.bfloat16))
    optimizer = optim.SGD([param], lr=2.0**-10)
    optimizer.use_master_weights()
    for _ in range(2):
        param.grad = flow.ones(4, dtype=flow.bfloat16)
        optimizer.step()
    with flow.no_grad():
        param[1] = 3.0
    param.grad = flow.ones(4, dtype=flow.bfloat16)
    optimizer.step()
    step = 2.0**-10
    assert optimizer.state[param]["master"].tolist() == [1 - 3 * step, 3 - step, 1 - 3 * step, 1 - 3 * step]


def test_only_low_precision_has_masters_and_they_go_when_switched_off():
    params = [nn.Parameter(flow.ones(2, dtype=d)) for d in (flow.float32, flow.bfloat16, flow.float16)]
    optimizer = optim.Adam(params, lr=0.5)
    optimizer.use_master_weights()
    for on, has in ((True, [False, True, True]), (False, [False] * 3)):
        optimizer.use_master_weights(on)
        for param in params:
            param.grad = flow.ones(2, dtype=param.dtype)
        optimizer.step()
        assert ["master" in optimizer.state[p] for p in params] == has
    assert params[1].tolist() == pytest.approx([0.0, 0.0], abs=1e-2)


@pytest.mark.parametrize("ranks", [None, [0, 1, 2, 3]], ids=["local", "global"])
def test_compiled_steps_are_eager_steps(ranks):
    results = []
    for compiled in (False, True):
        params = make(None if ranks is None else ["B", "B"])
        optimizer = optim.AdamW(params, lr=1e-2)
        optimizer.use_master_weights()

        def step(x, params=params, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((x @ params[0] + params[1]).float() ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = flow.compile(step, state=(params, optimizer)) if compiled else step
        for i in range(5):
            x = flow.tensor(np.random.default_rng(i).standard_normal((8, 8)).astype(np.float32)).to(flow.bfloat16)
            run(x if ranks is None else x.to_global(params[0].placement, flow.sbp.broadcast))
        results.append([p.detach().float().numpy() for p in params])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, atol=2**-7)  # one unit in the last place of bfloat16 near 1
