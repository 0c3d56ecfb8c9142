"""Evaluated updates: one trace of an elementwise rule serves all shapes, with the bits of the whole trace."""

import importlib

import numpy as np
import pytest

import sbpjax
from sbpjax import nn, optim
from sbpjax.optim import evaluated_update, run
from sbpjax.optim.rules import Bucket, elementwise

SHAPES = ((3, 4), (4,), (), (2, 1, 3), (0, 2))
first_use = importlib.import_module("sbpjax._core.compiler.eager.evaluator.first_use")  # not the lazy one
CASES = {
    "adam": lambda p: optim.Adam(p, lr=0.1, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.1, amsgrad=True),
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "plain_sgd": lambda p: optim.SGD(p, lr=0.1, maximize=True),
    "adadelta": lambda p: optim.Adadelta(p, lr=0.1, weight_decay=0.1),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "adamax": lambda p: optim.Adamax(p, lr=0.1),
    "radam": lambda p: optim.RAdam(p, lr=0.1),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    "rprop": lambda p: optim.Rprop(p, lr=0.1),
    "groups": lambda p: optim.Adam([{"params": p[:2], "lr": 0.3}, {"params": p[2:]}], lr=0.1),
}


@pytest.fixture
def traced(monkeypatch):
    """Whether an update was traced as a whole."""
    found = []
    original = first_use.evaluate_traced
    monkeypatch.setattr(first_use, "evaluate_traced", lambda *a: found.append(a[0]) or original(*a))
    return found


def parameters(dtype="float32") -> list:
    rng = np.random.default_rng(0)
    return [nn.Parameter(sbpjax.tensor(rng.standard_normal(s), dtype=getattr(sbpjax, dtype))) for s in SHAPES]


def train(make, dtype="float32", scale=None) -> list[bytes]:
    params = parameters(dtype)
    optimizer = make(params)
    scaler = sbpjax.amp.GradScaler(init_scale=scale) if scale else None
    rng = np.random.default_rng(1)
    for _ in range(3):
        for p in params:
            p.grad = sbpjax.tensor(rng.standard_normal(p.shape), dtype=p.dtype)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
    state = [v for p in params for _, v in sorted(optimizer.state[p].items()) if isinstance(v, sbpjax.Tensor)]
    return [np.ascontiguousarray(t.detach().float().numpy()).tobytes() for t in (*params, *state)]


@pytest.mark.parametrize("name", CASES)
def test_one_trace_serves_all_shapes_with_the_same_bits(traced, monkeypatch, name):
    run._compile_program.cache_clear()
    found = train(CASES[name])
    assert not traced
    monkeypatch.setattr(run, "evaluate_update", lambda *a: None)
    run._compile_program.cache_clear()
    assert train(CASES[name]) == found
    assert traced


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_dtypes_have_the_bits_of_the_whole_trace(monkeypatch, dtype):
    found = train(CASES["adamw"], dtype)
    monkeypatch.setattr(run, "evaluate_update", lambda *a: None)
    run._compile_program.cache_clear()
    assert train(CASES["adamw"], dtype) == found


def test_a_guarded_update_leaves_everything_where_a_gradient_overflowed(traced):
    params = parameters()
    before = [p.detach().numpy().copy() for p in params]
    optimizer, scaler = optim.AdamW(params, lr=0.1), sbpjax.amp.GradScaler(init_scale=4.0)
    for p in params:
        p.grad = sbpjax.full(p.shape, float("inf"))
    scaler.step(optimizer)
    assert all((p.detach().numpy() == b).all() for p, b in zip(params, before, strict=True))
    assert not traced


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.LAMB(p, lr=0.1),
        lambda p: optim.ASGD(p, lr=0.1),
        lambda p: optim.Adafactor(p, lr=0.1),
        lambda p: optim.NAdam(p, lr=0.1),  # has a state of one number
    ],
    ids=["lamb", "asgd", "adafactor", "nadam"],
)
def test_other_rules_are_traced_as_a_whole(traced, make):
    train(make)
    assert traced


def test_a_rule_that_reads_its_shape_is_not_elementwise():
    @elementwise
    def centred(p, g, state, step, hyper):
        return p - (g - g.mean()), state

    types = ((np.dtype("int64"), False),)
    assert evaluated_update._trace(Bucket(centred, (), (), (), 1), False, types, (np.dtype("float32"),) * 2) is None
