"""The state of optimizers as dicts: what goes on where it was, and what is refused without a change."""

import copy

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.optim import lr_scheduler

SHAPES = [(4, 3), (3,)]
KINDS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.1),
    "adadelta": lambda p: optim.Adadelta(p),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    "lamb": lambda p: optim.LAMB(p, lr=0.1),
}


def make(dtype=flow.float32):
    rng = np.random.default_rng(0)
    return [nn.Parameter(flow.tensor(rng.standard_normal(s).astype(np.float32)).to(dtype)) for s in SHAPES]


def give(params, seed):
    rng = np.random.default_rng(seed)
    for param in params:
        param.grad = flow.tensor(rng.standard_normal(tuple(param.shape)).astype(np.float32)).to(param.dtype)


def numbers(optimizer):
    """Return everything that a refused load must leave as it was."""
    found = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
    state = [
        {n: t.tolist() for n, t in optimizer.state[p].items() if n != "step" or optimizer._counts_steps}
        for g in optimizer.param_groups
        for p in g["params"]
    ]
    return copy.deepcopy((found, state))


@pytest.mark.parametrize("masters", [False, True], ids=["plain", "masters"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_is_bit_exact_with_its_schedule(kind, masters):
    def fresh():
        params = make(flow.bfloat16 if masters else flow.float32)
        optimizer = KINDS[kind](params)
        if masters:
            optimizer.use_master_weights()
        return params, optimizer, lr_scheduler.CosineAnnealingLR(optimizer, 20)

    params, optimizer, scheduler = fresh()
    for step in range(5):
        give(params, step)
        optimizer.step()
        scheduler.step()
    saved = scheduler.state_dict()
    state = optimizer.state_dict()
    other, resumed, second = fresh()
    for a, b in zip(other, params):
        a.data = b.detach().clone()
    resumed.load_state_dict(state)
    second.load_state_dict(saved)
    assert numbers(resumed) == numbers(optimizer)
    for step in range(5, 10):
        for owned, opt, sch in ((params, optimizer, scheduler), (other, resumed, second)):
            give(owned, step)
            opt.step()
            sch.step()
    assert numbers(resumed) == numbers(optimizer)
    for a, b in zip(params, other):
        np.testing.assert_array_equal(a.detach().float().numpy(), b.detach().float().numpy())


def changed(state, **parts):
    """Return a copy of a state dict with an entry of parameter 0, an option, or a top-level key replaced."""
    new = {"state": {k: dict(v) for k, v in state["state"].items()}, "param_groups": [dict(state["param_groups"][0])]}
    new["state"][0] |= parts.pop("entry", {})
    new["param_groups"][0] |= parts.pop("option", {})
    new["state"] |= parts.pop("number", {})
    return new | parts


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"entry": {"exp_avg": flow.ones(3, 4)}}, r"'exp_avg' of parameter 0 of shape \[3, 4\].*\n.*shape \[4, 3\]"),
        ({"entry": {"exp_avg": 1.0}}, r"of shape \[\]"),
        ({"entry": {"step": flow.ones(4)}}, r"'step' of parameter 0 of shape \[4\]"),
        ({"entry": {"momentum_buffer": flow.ones(4, 3)}}, "keeps .*'exp_avg', 'exp_avg_sq', 'master'"),
        ({"option": {"dampening": 0.1}}, "Adam has no option 'dampening'"),
        ({"option": {"lr": -1.0}}, "Invalid learning rate: -1.0"),
        ({"option": {"params": [0]}}, "doesn't match the size of optimizer's group"),
        ({"number": {7: {"step": 1}}}, "the groups have parameters 0 to 1"),
        ({"param_groups": []}, "different number of parameter groups"),
        ({"scheduler": {}}, "has the keys 'state' and 'param_groups'"),
    ],
)
def test_a_foreign_state_is_refused_and_changes_nothing(parts, text):
    params = make()
    optimizer = optim.Adam(params, lr=0.1)
    give(params, 0)
    optimizer.step()
    before, state = numbers(optimizer), optimizer.state_dict()
    with pytest.raises(ValueError, match=text):
        optimizer.load_state_dict(changed(state, **parts))
    assert numbers(optimizer) == before
    give(params, 1)
    optimizer.step()


@pytest.mark.parametrize(
    "kind",
    [
        lambda m, p: m.SGD(p, lr=0.1, momentum=0.9),
        lambda m, p: m.AdamW(p, lr=0.1, amsgrad=True),
        lambda m, p: m.Adagrad(p, lr=0.1, lr_decay=0.1),
        lambda m, p: m.Adadelta(p),
        lambda m, p: m.RMSprop(p, lr=0.1, momentum=0.9, centered=True, eps=1e-16),
    ],
    ids=["sgd", "adamw", "adagrad", "adadelta", "rmsprop"],
)
def test_a_state_that_pytorch_saved_goes_on_here(kind):
    params = make()
    others = [torch.nn.Parameter(torch.tensor(p.detach().numpy())) for p in params]
    reference = kind(torch.optim, others)

    def steps(first, last, *pairs):
        for step in range(first, last):
            give(params, step)
            for other, param in zip(others, params):
                other.grad = torch.tensor(param.grad.numpy())
            for optimizer in pairs:
                optimizer.step()

    steps(0, 4, reference)
    for param, other in zip(params, others):
        param.data = flow.tensor(other.detach().numpy())
    optimizer = kind(optim, params)
    optimizer.load_state_dict(reference.state_dict())
    steps(4, 8, reference, optimizer)
    if "step" in reference.state_dict()["state"][0]:
        assert int(optimizer.state[params[0]]["step"].item()) == 8
    for param, other in zip(params, others):
        np.testing.assert_allclose(param.detach().numpy(), other.detach().numpy(), rtol=2e-6, atol=2e-6)


def test_groups_stay_the_objects_that_users_hold():
    params = make()
    optimizer = optim.Adam(params, lr=0.1)
    group = optimizer.param_groups[0]
    other = optim.Adam(make(), lr=0.025)
    optimizer.load_state_dict(other.state_dict())
    assert optimizer.param_groups[0] is group and group["lr"] == 0.025 and group["params"][0] is params[0]


def test_a_loaded_state_does_not_alias_the_one_it_came_from():
    params, others = make(), make()
    first, second = optim.SGD(params, lr=0.1, momentum=0.9), optim.SGD(others, lr=0.1, momentum=0.9)
    give(params, 0)
    first.step()
    second.load_state_dict(first.state_dict())
    before = second.state[others[0]]["momentum_buffer"].tolist()
    give(params, 1)
    first.step()
    assert second.state[others[0]]["momentum_buffer"].tolist() == before


def test_groups_of_a_loaded_state_have_step_counts_of_their_own_as_fresh_ones():
    def of_two_groups():
        params = make()
        return params, optim.Adam([{"params": [param]} for param in params])

    params, fresh = of_two_groups()
    give(params, 1)
    fresh.step()
    _, resumed = of_two_groups()
    resumed.load_state_dict(fresh.state_dict())
    assert len(resumed.state_tensors()) == len(fresh.state_tensors()) == 6
