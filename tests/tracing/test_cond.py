"""`cond`: the same as Python's `if`, eagerly and compiled, with gradients of what the functions close over."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import OpError, OpTypeError
from tests.support import graphs

PLACES = {"local": None, "data": "S0"}


def laid(x, place):
    return x if PLACES[place] is None else x.to_global(flow.placement("cpu", [0, 1, 2, 3]), PLACES[place])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_it_chooses(place, sign):
    def choose(x):
        return flow.cond(x.sum() > 0, lambda x: x * 2, lambda x: (x + 1).abs(), x)

    x = laid(flow.arange(8).float() * sign, place)
    eager = choose(x)
    np.testing.assert_array_equal(eager.numpy(), x.numpy() * 2 if sign > 0 else np.abs(x.numpy() + 1))
    np.testing.assert_array_equal(flow.compile(choose)(x).numpy(), eager.numpy())


def test_a_python_bool_and_several_results():
    a, b = flow.cond(True, lambda x: (x, x + 1), lambda x: (x - 1, x), flow.ones(2))
    assert a.tolist() == [1, 1] and b.tolist() == [2, 2]
    pair = flow.compile(lambda x: flow.cond(x[0] > 3, lambda: (x, x + 1), lambda: (x - 1, x)))(flow.ones(2))
    assert [t.tolist() for t in pair] == [[0, 0], [1, 1]]


def objective(net, x):
    hidden = net[0](x)
    chosen = flow.cond(x.sum() > 0, lambda h: net[1](h).tanh(), lambda h: h * net[2].weight.sum(), hidden)
    return (chosen * hidden).square().mean()


class Train(graphs.Train):
    loss = staticmethod(objective)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gradients_flow_to_operands_and_to_what_is_closed_over(place, sign):
    def made(place):
        flow.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
        if place == "data":
            net.to_global(flow.placement("cpu", [0, 1, 2, 3]), "B")
        return net, flow.optim.SGD(net.parameters(), lr=0.5)

    x = flow.ones(8, 4) * sign
    reference, sgd = made("local")
    for _ in range(3):
        sgd.zero_grad()
        objective(reference, x).backward()
        sgd.step()
    net, optimizer = made(place)
    graph = Train(net, optimizer)
    for _ in range(3):
        graph(laid(x, place))
    # a parameter of the branch that did not run has a zero gradient in a program and none in eager code
    for p, q in zip(net.to_local().parameters(), reference.parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-4, atol=1e-6)


def test_random_numbers_differ_from_call_to_call():
    draw = flow.compile(lambda x: flow.cond(x[0] > 0, lambda: flow.rand(4) + x, lambda: x) + flow.rand(4))
    x = flow.ones(4)
    assert (draw(x).numpy() != draw(x).numpy()).all()


def test_mistakes():
    x = flow.ones(2)

    def run(true_fn, false_fn, pred=lambda x: x[0] > 0):
        return flow.compile(lambda x: flow.cond(pred(x), true_fn, false_fn, x))(x)

    with pytest.raises(OpError, match=r"(?s)true_fn returns float32\[2\]; false_fn returns float32\[1\].*fix: "):
        run(lambda x: x, lambda x: x[:1])
    with pytest.raises(OpError, match=r"(?s)pred of shape \[2\].*sbpjax.where"):
        run(lambda x: x, lambda x: x, lambda x: x > 0)
    with pytest.raises(OpTypeError, match="returns a int"):
        run(lambda x: 1, lambda x: 2)
    held = flow.ones(2)
    with pytest.raises(OpError, match="writes a tensor in place"):
        run(lambda x: held.add_(x), lambda x: x)
    norm = nn.BatchNorm1d(3)
    with pytest.raises(OpError, match="writes a tensor in place"):
        flow.compile(lambda x: flow.cond(x.sum() > 0, norm, lambda x: x, x), state=norm)(flow.ones(4, 3))


def test_what_a_function_makes_itself_may_be_written():
    def fn(x, w):
        def branch():
            y = x * w
            y += 1
            y[0] = 0.0
            return y.sum()

        return flow.cond(x[0] > 0, branch, lambda: x.sum())

    x, w = flow.tensor([1.0, 2.0]), flow.tensor([3.0, 4.0], requires_grad=True)
    assert flow.compile(fn)(x, w).item() == fn(x, w).item() == 9.0
