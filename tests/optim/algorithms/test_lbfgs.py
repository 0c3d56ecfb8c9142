"""LBFGS against PyTorch's, iterate by iterate, in float64; its line search by the conditions that define it."""

import math

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.optim.algorithms.line_search import C1, C2, LineSearchTrial, cubic_minimum, strong_wolfe

TOLERANCE = 1e-9  # float64; the two-loop recursion multiplies rounding errors over the history
LINE = flow.placement("cpu", [0, 1, 2, 3])


def rosenbrock(x, y):
    return ((1 - x[:-1]) ** 2).sum() + 100 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((y - x[:2]) ** 2).sum()


def quadratic(x, y):
    return (x**2).sum() * 0.5 + (x[:2] * y).sum() + 2 * (y**2).sum()


def logistic(x, y):
    return (1 + (-x * 3).exp()).log().sum() + (x**2).sum() * 0.1 + (y - 1).cosh().sum()


FUNCTIONS = {"rosenbrock": rosenbrock, "quadratic": quadratic, "logistic": logistic}
START = [np.array([-1.2, 1.0, 0.5, -0.3]), np.array([2.0, -1.0])]
OPTIONS = [
    {"lr": 0.1, "max_iter": 5},
    {"lr": 0.2, "max_iter": 8, "history_size": 3},
    {"max_iter": 6, "line_search_fn": "strong_wolfe"},
    {"max_iter": 20, "max_eval": 9, "line_search_fn": "strong_wolfe", "history_size": 4},
    {"lr": 30.0, "max_iter": 4, "line_search_fn": "strong_wolfe"},
]


def iterates(package, function, options, steps, layout=None):
    make = flow.tensor if package is flow else torch.tensor
    params = [make(v) for v in START]
    if layout is not None:
        params = [p.to_global(LINE, sbp) for p, sbp in zip(params, layout)]
    params = [package.nn.Parameter(p) for p in params]
    optimizer = package.optim.LBFGS(params, **options)
    evaluated = []

    def closure():
        optimizer.zero_grad()
        loss = function(*params)
        loss.backward()
        evaluated.append(loss.item())
        return loss

    seen = []
    for _ in range(steps):
        seen.append((optimizer.step(closure).item(), [p.detach().numpy().copy() for p in params]))
    return seen, evaluated, optimizer


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_torch(name, options):
    ours, mine, optimizer = iterates(flow, FUNCTIONS[name], options, 4)
    theirs, others, reference = iterates(torch, FUNCTIONS[name], options, 4)
    np.testing.assert_allclose(mine, others, rtol=1e-7, atol=TOLERANCE)
    for (loss, params), (other, values) in zip(ours, theirs):
        assert loss == pytest.approx(other, rel=1e-7, abs=TOLERANCE)
        for a, b in zip(params, values):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=TOLERANCE)
    state, expected = optimizer.state_dict()["state"][0], reference.state_dict()["state"][0]
    assert (state["n_iter"], state["func_evals"]) == (expected["n_iter"], expected["func_evals"])
    assert state.keys() <= expected.keys()


@pytest.mark.parametrize("layout", [["B", "B"], ["S0", "B"]], ids=str)
def test_global_parameters(layout):
    local, _, _ = iterates(flow, rosenbrock, OPTIONS[2], 3)
    spread, _, _ = iterates(flow, rosenbrock, OPTIONS[2], 3, layout)
    for (_, a), (_, b) in zip(local, spread):
        np.testing.assert_allclose(a[0], b[0], rtol=1e-7, atol=TOLERANCE)


def test_finds_the_minimum_of_a_narrow_valley():
    seen, _, _ = iterates(flow, rosenbrock, {"line_search_fn": "strong_wolfe", "tolerance_change": 1e-14}, 8)
    np.testing.assert_allclose(seen[-1][1][0], np.ones(4), atol=1e-5)


def test_state_dict_goes_on():
    whole, _, _ = iterates(flow, rosenbrock, OPTIONS[2], 4)
    first, _, optimizer = iterates(flow, rosenbrock, OPTIONS[2], 2)
    params = [nn.Parameter(flow.tensor(v)) for v in first[-1][1]]
    resumed = optim.LBFGS(params)
    resumed.load_state_dict(optimizer.state_dict())

    def closure():
        resumed.zero_grad()
        loss = rosenbrock(*params)
        loss.backward()
        return loss

    for _ in range(2):
        resumed.step(closure)
    for param, value in zip(params, whole[-1][1]):
        np.testing.assert_array_equal(param.detach().numpy(), value)
    bad = resumed.state_dict()
    bad["state"] = {0: {**bad["state"][0], "d": flow.ones(3)}}
    with pytest.raises(ValueError, match="vectors of 6 elements"):
        resumed.load_state_dict(bad)


# -- the line search -------------------------------------------------------------------------------------------------

LINES = {
    "far": (lambda t: (t - 40.0) ** 2, lambda t: 2 * (t - 40.0)),
    "near": (lambda t: (t - 0.01) ** 2, lambda t: 2 * (t - 0.01)),
    "wavy": (lambda t: t * t / 20 - math.sin(3 * t), lambda t: t / 10 - 3 * math.cos(3 * t)),
    "steep": (lambda t: math.exp(3 * t) - 40 * t, lambda t: 3 * math.exp(3 * t) - 40),
}


@pytest.mark.parametrize("first", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("name", LINES)
def test_the_step_found_satisfies_both_conditions(name, first):
    loss, slope = LINES[name]
    start = LineSearchTrial(0.0, loss(0.0), None, slope(0.0))
    found, trials = strong_wolfe(lambda t: LineSearchTrial(t, loss(t), None, slope(t)), start, first, 1.0, 1e-9)
    assert 1 <= trials <= 26
    assert found.loss <= start.loss + C1 * found.t * start.slope
    assert abs(found.slope) <= C2 * abs(start.slope)


def test_the_minimum_of_a_cubic_is_found_at_once():
    def at(t):
        return LineSearchTrial(t, t**3 - 3 * t, None, 3 * t**2 - 3)

    assert cubic_minimum(at(0.0), at(3.0)) == pytest.approx(1.0)
    assert cubic_minimum(at(3.0), at(0.0)) == pytest.approx(1.0)
    assert cubic_minimum(at(0.0), at(3.0), 1.5, 2.5) == 1.5


# -- errors ----------------------------------------------------------------------------------------------------------


def test_bad_use():
    params = [nn.Parameter(flow.ones(2))]
    with pytest.raises(TypeError, match="required positional argument: 'closure'"):
        optim.LBFGS(params).step()
    with pytest.raises(ValueError, match="only 'strong_wolfe'"):
        optim.LBFGS(params, line_search_fn="wolfe")
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        optim.LBFGS([{"params": params}, {"params": [nn.Parameter(flow.ones(2))]}])
    with pytest.raises(RuntimeError, match="how often its closure runs"):
        flow.compile(lambda x: x, state=(optim.LBFGS(params),))(flow.ones(2))


def least_squares(package, **options):
    """Return the parameter, the optimizer and the number of evaluations of five steps in float32."""
    x, y = (np.random.RandomState(3).standard_normal(s).astype("float32") for s in ((8, 5), (8, 3)))
    x, y, w = package.tensor(x), package.tensor(y), package.nn.Parameter(package.zeros(5, 3))
    optimizer, evaluated = package.optim.LBFGS([w], **options), []

    def closure():
        optimizer.zero_grad()
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        evaluated.append(loss.item())
        return loss

    for _ in range(5):
        optimizer.step(closure)
    return w.detach().numpy(), optimizer, len(evaluated)


def test_line_search_in_float32_stops_where_torch_stops():
    # Compared in float64, losses that are equal to the last bit of float32 never fall enough: 11 evaluations per step.
    ours, _, mine = least_squares(flow, line_search_fn="strong_wolfe")
    theirs, _, others = least_squares(torch, line_search_fn="strong_wolfe")
    assert mine <= others + 3
    np.testing.assert_allclose(ours, theirs, atol=1e-4)  # the loss is flat to sqrt(eps)


def test_learning_rate_of_a_tensor_is_left_as_it_is():
    rate = flow.tensor(0.01)
    ours, _, _ = least_squares(flow, lr=rate)
    theirs, _, _ = least_squares(torch, lr=torch.tensor(0.01))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert rate.item() == pytest.approx(0.01)


def test_state_of_torch_is_loaded():
    _, reference, _ = least_squares(torch, max_iter=3)
    _, optimizer, _ = least_squares(flow, max_iter=1)
    state = reference.state_dict()
    optimizer.load_state_dict(state)
    assert set(optimizer.state_dict()["state"][0]) == set(state["state"][0])
