"""State laid out apart from its parameter (each device keeps 1/n): same numbers, layouts kept, gathers counted."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim

STEPS = 6
TOLERANCE = 2e-6  # a few units in the last place of float32
SHAPES = [(8, 4), (6, 5), (7,)]  # 6, 5 and 7 do not divide by 4
LINE = flow.placement("cpu", [0, 1, 2, 3])
KINDS = {
    "adamw": lambda p: optim.AdamW(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "lamb": lambda p: optim.LAMB(p, lr=0.1, weight_decay=0.1),
}


def values(seed):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def make(sbp="B", dtype=flow.float32):
    return [nn.Parameter(flow.tensor(v).to_global(LINE, sbp).to(dtype)) for v in values(0)]


def give(params, seed, sbp="B"):
    for param, value in zip(params, values(seed)):
        param.grad = flow.tensor(value).to_global(LINE, sbp).to(param.dtype)


def shard(optimizer, sbp="S0"):
    """Lay out all state but the step counts anew, in place."""
    for state in optimizer.state.values():
        for name, tensor in state.items():
            if name != "step":
                moved = tensor.to_global(LINE, sbp)
                tensor._set(moved._array, moved._layout)


def sbps(optimizer):
    return {t.sbp for s in optimizer.state.values() for n, t in s.items() if n != "step"}


@pytest.mark.parametrize("grads", ["B", "P"])
@pytest.mark.parametrize("masters", [False, True], ids=["plain", "masters"])
@pytest.mark.parametrize("kind", KINDS)
def test_same_numbers_and_the_layouts_stay(kind, masters, grads):
    dtype = flow.bfloat16 if masters else flow.float32
    whole, sharded = make(dtype=dtype), make(dtype=dtype)
    first, second = KINDS[kind](whole), KINDS[kind](sharded)
    for optimizer in (first, second):
        if masters:
            optimizer.use_master_weights()
        optimizer.prepare()
    shard(second)
    for step in range(STEPS):
        for params, optimizer in ((whole, first), (sharded, second)):
            give(params, step + 1, grads)
            optimizer.step()
    assert sbps(second) == {(flow.sbp.split(0),)} and all(p.sbp == (flow.sbp.broadcast,) for p in sharded)
    for a, b in zip(whole, sharded):
        np.testing.assert_allclose(
            a.detach().float().numpy(), b.detach().float().numpy(), rtol=TOLERANCE, atol=2**-8 if masters else TOLERANCE
        )
    for number, state in first.state_dict()["state"].items():
        for name, tensor in state.items():
            other = second.state_dict()["state"][number][name].numpy()
            np.testing.assert_allclose(tensor.numpy(), other, rtol=TOLERANCE, atol=TOLERANCE)


def test_each_device_holds_its_part():
    params = make()
    optimizer = optim.Adam(params, lr=0.1)
    optimizer.prepare()
    shard(optimizer)
    give(params, 1)
    optimizer.step()
    array = optimizer.state[params[0]]["exp_avg"]._array
    assert len(array.sharding.device_set) == 4 and all(s.data.shape == (2, 4) for s in array.addressable_shards)


@pytest.mark.parametrize("source", ["sharded", "whole"])
def test_a_loaded_state_comes_in_the_layout_of_the_one_it_replaces(source):
    params = make()
    optimizer = optim.Adam(params, lr=0.1)
    give(params, 1)
    optimizer.step()
    if source == "sharded":
        shard(optimizer)
    other = make()
    resumed = optim.Adam(other, lr=0.1)
    resumed.prepare()
    shard(resumed)
    resumed.load_state_dict(optimizer.state_dict())
    assert sbps(resumed) == {(flow.sbp.split(0),)}
    for a, b in zip(params, other):
        np.testing.assert_array_equal(optimizer.state[a]["exp_avg"].numpy(), resumed.state[b]["exp_avg"].numpy())
    give(other, 2)
    resumed.step()
    assert sbps(resumed) == {(flow.sbp.split(0),)}


def test_state_follows_when_the_parameter_itself_is_laid_out_anew():
    params = make()
    optimizer = optim.Adam(params, lr=0.1)
    optimizer.prepare()
    shard(optimizer)
    param = params[0]
    param.data = param.data.to_global(LINE, flow.sbp.split(1))
    give(params, 1)
    optimizer.step()
    assert optimizer.state[param]["exp_avg"].sbp == (flow.sbp.split(1),)
    assert optimizer.state[params[1]]["exp_avg"].sbp == (flow.sbp.split(0),)


def test_a_compiled_step_gathers_the_parameters_once_and_keeps_the_state_split():
    results = []
    for sharded in (False, True):
        params = make()[:1]
        optimizer = optim.AdamW(params, lr=0.1)
        optimizer.prepare()
        if sharded:
            shard(optimizer)

        def step(x, params=params, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((x @ params[0]) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        compiled = flow.compile(step, state=(params, optimizer))
        x = flow.tensor(np.random.default_rng(5).standard_normal((16, 8)).astype(np.float32))
        x = x.to_global(LINE, flow.sbp.split(0))
        for _ in range(3):
            compiled(x)
        text = compiled.lower(x).compile().as_text()
        results.append((params[0].detach().numpy(), text.count(" all-gather("), text.count(" reduce-scatter(")))
        if sharded:
            assert sbps(optimizer) == {(flow.sbp.split(0),)} and params[0].sbp == (flow.sbp.broadcast,)
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5, atol=1e-6)
    assert results[0][1:] == (0, 0) and results[1][1:] == (1, 1)
