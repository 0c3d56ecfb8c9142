"""`zero_grad`: OneFlow's default, in place, and a zero that costs neither a program nor an addition."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim

LINE = ("cpu", [0, 1, 2, 3])


def weight(sbp=None):
    w = flow.tensor(np.arange(12, dtype=np.float32).reshape(6, 2))
    if sbp is not None:
        w = w.to_global(flow.placement(*LINE), sbp)
    return w.requires_grad_()


@pytest.mark.parametrize("sbp", [None, flow.sbp.broadcast, flow.sbp.split(0)], ids=str)
def test_gradient_is_zeroed_in_place_and_takes_the_next_one(sbp):
    w = weight(sbp)
    optimizer = optim.SGD([w], lr=0.1)
    (w * 2).sum().backward()
    grad = w.grad
    optimizer.zero_grad()
    assert w.grad is grad and not grad.numpy().any()
    (w * 3).sum().backward()
    assert w.grad is grad and (grad.numpy() == 3).all()
    (w * 3).sum().backward()
    assert (grad.numpy() == 6).all()
    optimizer.zero_grad(set_to_none=True)
    assert w.grad is None


def test_a_gradient_that_is_no_number_is_gone():
    w = weight()
    w.grad = flow.full((6, 2), float("nan"))
    optim.SGD([w], lr=0.1).zero_grad()
    assert not w.grad.numpy().any()


def test_zeros_are_shared_and_nobody_writes_them():
    model = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
    sum(layer(flow.ones(1, 3)).sum() for layer in model).backward()
    model.zero_grad()
    arrays = {id(layer.weight.grad._array) for layer in model}
    assert len(arrays) == 1
    model[0].weight.grad += 1
    assert not model[1].weight.grad.numpy().any()
    model[0](flow.ones(1, 3)).sum().backward()
    assert (model[0].weight.grad.numpy() == 2).all()


def test_a_step_without_a_new_gradient_goes_on_by_momentum():
    w = weight()
    optimizer = optim.SGD([w], lr=1.0, momentum=0.5)
    w.sum().backward()
    optimizer.step()
    before = w.detach().numpy().copy()
    optimizer.zero_grad()
    optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), before - 0.5)


def test_zeroing_a_gradient_with_a_graph_of_its_own():
    w = weight()
    (w**3).sum().backward(create_graph=True)
    assert w.grad.requires_grad
    optim.SGD([w], lr=0.1).zero_grad()
    assert not w.grad.requires_grad and not w.grad.numpy().any()
