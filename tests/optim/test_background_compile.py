"""An optimizer's first update, compiled before its step: the program is the one that the step calls."""

import weakref

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax._core.tensor.storage.lazy_random import is_undrawn
from sbpjax.optim import background_compile
from tests.compiler.eager.test_background_compile import compiled, two_cores  # noqa: F401  (fixtures)

pytestmark = pytest.mark.usefixtures("compiled_ops")


def made(optimizer, dtype=flow.float32, sizes=(5, 3), **options):
    """Return parameters of shapes of their own, and an optimizer of two groups."""
    rng = np.random.default_rng(0)
    shapes = [sizes, sizes[:1], (2, *sizes)]
    params = [nn.Parameter(flow.tensor(rng.standard_normal(s).astype("f"), dtype=dtype)) for s in shapes]
    return params, optimizer([{"params": params[:2]}, {"params": params[2:], "lr": 0.01}], **options)


def stepped(params, optimizer):
    for param in params:
        param.grad = flow.ones_like(param) * 0.5
    optimizer.step()
    return [param.detach().float().numpy() for param in params]


CASES = {
    "sgd": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    "plain sgd": (optim.SGD, {"lr": 0.1}),
    "adamw": (optim.AdamW, {}),
    "adam with amsgrad": (optim.Adam, {"amsgrad": True}),
    "asgd": (optim.ASGD, {}),
    "adafactor": (optim.Adafactor, {}),
    "lamb": (optim.LAMB, {}),
}


def updates(compiled):  # noqa: F811
    return [name for name, _ in compiled if name == "jit(update)"]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("masters", [False, True])
def test_the_step_compiles_nothing_more(name, masters, compiled):  # noqa: F811
    optimizer, options = CASES[name]
    sizes = (7, 3 + list(CASES).index(name))  # so that no other case has compiled it
    dtype = flow.bfloat16 if masters else flow.float32
    params, one = made(optimizer, dtype, sizes, **options)
    one.use_master_weights(masters)
    background_compile.compile_update(weakref.ref(one))
    assert len(updates(compiled)) == 1 and not one.state
    found = stepped(params, one)
    assert len(updates(compiled)) == 1
    params, other = made(optimizer, dtype, sizes, **options)
    other.use_master_weights(masters)
    for a, b in zip(found, stepped(params, other)):
        np.testing.assert_array_equal(a, b)


def test_weights_need_not_be_drawn_for_it(compiled):  # noqa: F811
    layer = nn.Linear(5, 19)
    optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    background_compile.compile_update(weakref.ref(optimizer))
    assert is_undrawn(layer.weight) and len(updates(compiled)) == 1
    stepped(list(layer.parameters()), optimizer)
    assert len(updates(compiled)) == 1


def test_a_step_that_runs_something_else_compiles_that(compiled):  # noqa: F811
    params, optimizer = made(optim.SGD, sizes=(4, 11), lr=0.1)
    background_compile.compile_update(weakref.ref(optimizer))
    params[1].requires_grad_(False)
    before = params[1].detach().numpy().copy()
    stepped(params, optimizer)
    assert len(updates(compiled)) == 2
    np.testing.assert_array_equal(params[1].numpy(), before)


@pytest.mark.parametrize("reason", ["has stepped", "global", "is gone"])
def test_nothing_is_compiled_where_the_update_is_another_one(reason, compiled):  # noqa: F811
    params, optimizer = made(optim.SGD, sizes=(3, 13), lr=0.1)
    if reason == "has stepped":
        stepped(params, optimizer)
    elif reason == "global":
        for param in params:
            param.data = param.data.to_global(placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)
    reference = weakref.ref(optimizer)
    if reason == "is gone":
        del optimizer
    before = len(updates(compiled))
    background_compile.compile_update(reference)
    assert len(updates(compiled)) == before


def test_a_training_step_compiles_its_update_once(two_cores, compiled):  # noqa: F811
    model = nn.Sequential(nn.Linear(6, 17), nn.Tanh(), nn.Linear(17, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(flow.ones(2, 6)).sum().backward()
    optimizer.step()
    assert len(updates(compiled)) == 1
