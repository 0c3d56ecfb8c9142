"""`compile_function`: functions and modules as programs on the tape, equal to what runs eagerly."""

import copy
import warnings

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import func, nn

X = np.random.default_rng(0).standard_normal((6, 3)).astype("f")


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def test_module_with_gradients_and_buffers(compilations):
    eager = network()
    fast = func.compile_function(copy.deepcopy(eager))
    assert isinstance(fast, nn.Module) and list(fast.state_dict())[0] == "_orig_mod.0.weight"
    for _ in range(2):
        for model in (eager, fast):
            model.zero_grad()
            model(flow.tensor(X)).pow(2).sum().backward()
    for (name, a), b in zip(eager.named_parameters(), fast.parameters(), strict=True):
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-5, atol=1e-5, err_msg=name)
    for a, b in zip(eager.buffers(), fast.buffers(), strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-6)
    assert fast._orig_mod[1].num_batches_tracked.item() == 2
    fast.zero_grad()
    with compilations as c:
        fast(flow.tensor(X)).pow(2).sum().backward()
    assert c.count == 0
    eager(flow.tensor(X))
    fast.eval(), eager.eval()
    before = fast._orig_mod[1].running_mean.clone()
    np.testing.assert_allclose(
        fast(flow.tensor(X[:2])).numpy(), eager(flow.tensor(X[:2])).numpy(), rtol=1e-4, atol=1e-5
    )
    assert (fast._orig_mod[1].running_mean == before).all()


def test_function_with_structures_and_changing_shapes():
    weight = flow.tensor(X.T.copy(), requires_grad=True)

    @func.compile_function
    def f(batch, *, scale=1.0):
        return {"y": (batch["x"] @ weight).tanh() * scale, "n": batch["x"].shape[0], "none": None}

    for rows, scale in ((6, 1.0), (4, 1.0), (4, 2.0)):
        out = f({"x": flow.tensor(X[:rows])}, scale=scale)
        assert out["n"] == rows and out["none"] is None
        np.testing.assert_allclose(out["y"].detach().numpy(), np.tanh(X[:rows] @ X.T) * scale, rtol=1e-5, atol=1e-6)
    out["y"].sum().backward()
    assert weight.grad.shape == weight.shape
    with flow.no_grad():
        weight.zero_()
    assert not f({"x": flow.tensor(X)})["y"].any()  # the weight is read anew


def test_random_numbers_differ_between_calls_and_repeat_by_seed():
    f = func.compile_function(lambda x: nn.functional.dropout(x, 0.5))
    flow.manual_seed(1)
    a, b = f(flow.ones(64)), f(flow.ones(64))
    flow.manual_seed(1)
    assert (f(flow.ones(64)) == a).all() and (a != b).any()


def test_global_tensors_and_gradients():
    grid = flow.placement("cpu", [0, 1])
    model = nn.Linear(3, 2).to_global(grid, flow.sbp.broadcast)
    fast = func.compile_function(model)
    x = flow.tensor(X, placement=grid, sbp="S0")
    fast(x).pow(2).sum().backward()
    mine = model.weight.grad.numpy()
    model.zero_grad()
    model(x).pow(2).sum().backward()
    np.testing.assert_allclose(mine, model.weight.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_what_cannot_be_traced_runs_as_it_is():
    f = func.compile_function(lambda x: x * 2 if x.sum() > 0 else x)
    with pytest.warns(UserWarning, match="uncompiled"):
        assert f(flow.ones(2)).tolist() == [2, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(-flow.ones(2)).tolist() == [-1, -1]
    with pytest.raises(TypeError):
        func.compile_function(lambda x: x * 2 if x.sum() > 0 else x, fullgraph=True)(flow.ones(2))


def test_a_whole_step_runs_as_it_is():
    model = nn.Linear(3, 1)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

    @func.compile_function
    def step(x):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss

    with pytest.warns(UserWarning, match="uncompiled"):
        first = step(flow.tensor(X)).item()
    assert step(flow.tensor(X)).item() < first and model.weight.grad is not None


def test_inside_another_program():
    f = func.compile_function(lambda x: x.exp())
    assert flow.compile(lambda x: f(x) * 2)(flow.zeros(2)).tolist() == [2, 2]
