"""Transforms of functions against PyTorch's, on one device and on placements, nested and inside programs."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import func

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # PyTorch's forward mode scripts itself

X = np.random.default_rng(0).standard_normal((5, 3)).astype("f")
W = np.random.default_rng(1).standard_normal((3, 3)).astype("f")


def values_of(value):
    """Return the leaves of PyTorch's result in the same order."""
    if isinstance(value, dict):
        return [v for item in value.values() for v in values_of(item)]
    if isinstance(value, (tuple, list)):
        return [v for item in value for v in values_of(item)]
    return [value.detach().numpy()]


def closed_over(t, f, make):
    w = make(W).requires_grad_()
    h = w * 2
    f.vmap(lambda x: (x @ h).sin())(make(X)).sum().backward()
    return w.grad


def per_sample(t, f, make):
    module = t.nn.Linear(3, 2)
    params = {"weight": make(W[:2]), "bias": make(W[2, :2])}

    def loss(params, x):
        return f.functional_call(module, params, (x,)).pow(2).sum()

    return f.vmap(f.grad(loss), in_dims=(None, 0))(params, make(X))


def ensemble(t, f, make):
    models = [t.nn.Linear(3, 2) for _ in range(3)]
    for i, m in enumerate(models):
        m.load_state_dict({"weight": make(W[:2] * (i + 1)), "bias": make(W[2, :2])})
    params, buffers = f.stack_module_state(models)
    base = models[0]
    out = f.vmap(lambda p, b, x: f.functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, make(X))
    out.pow(2).sum().backward()
    return out, params["weight"].grad


CASES = {
    "vmap": lambda t, f, m: f.vmap(lambda x: (x * 2).sum())(m(X)),
    "vmap, shared": lambda t, f, m: f.vmap(lambda x, w: x @ w, in_dims=(0, None))(m(X), m(W)),
    "vmap, dims": lambda t, f, m: f.vmap(lambda x, w: (x @ w, x), in_dims=(1, None), out_dims=(1, 0))(
        m(X.T.copy()), m(W)
    ),
    "vmap, nested": lambda t, f, m: f.vmap(f.vmap(lambda a, b: a * b, (None, 0)), (0, None))(
        m(X[:, 0].copy()), m(W[0])
    ),
    "vmap, dicts": lambda t, f, m: f.vmap(lambda d: {"y": d["x"].sort(-1)[0]}, in_dims=({"x": 0},))({"x": m(X)}),
    "vmap, chunks": lambda t, f, m: f.vmap(lambda x: x.cumsum(0), chunk_size=2)(m(X)),
    "vmap, negative dim": lambda t, f, m: f.vmap(lambda x: x.max(), in_dims=-1)(m(X)),
    "grad": lambda t, f, m: f.grad(lambda x: (x**3).sum())(m(X)),
    "grad of grad": lambda t, f, m: f.grad(f.grad(lambda x: x**3))(m(2.0)),
    "grad, argnums": lambda t, f, m: f.grad(lambda a, b: (a @ b).sum(), argnums=(0, 1))(m(X), m(W)),
    "grad, aux": lambda t, f, m: f.grad(lambda a: ((a * a).sum(), a + 1), has_aux=True)(m(X)),
    "grad, unused": lambda t, f, m: f.grad(lambda a, b: (b * b).sum())(m(X), m(W)),
    "grad and value": lambda t, f, m: f.grad_and_value(lambda a: (a * a).sum())(m(X)),
    "vmap of grad": lambda t, f, m: f.vmap(f.grad(lambda w, x: ((x @ w) ** 2).sum()), in_dims=(None, 0))(m(W), m(X)),
    "vjp": lambda t, f, m: f.vjp(lambda x, y: (x * y, x.sum()), m(X), m(X))[1]((m(X), m(1.0))),
    "jvp": lambda t, f, m: f.jvp(lambda x, y: (x * y, x.sum()), (m(X), m(X)), (m(X), m(X * 0 + 1))),
    "jacrev": lambda t, f, m: f.jacrev(lambda x: t.sin(x) * x.sum())(m(X)),
    "jacrev, dict": lambda t, f, m: f.jacrev(lambda p, x: x @ p["w"] + p["b"])({"w": m(W), "b": m(W[0])}, m(X)),
    "jacrev, aux": lambda t, f, m: f.jacrev(lambda x: (x * x.sum(), x), has_aux=True)(m(W)),
    "jacfwd": lambda t, f, m: f.jacfwd(lambda x: t.sin(x) * x.sum())(m(X)),
    "jacfwd, argnums": lambda t, f, m: f.jacfwd(lambda a, b: a @ b, argnums=(0, 1))(m(X), m(W)),
    "hessian": lambda t, f, m: f.hessian(lambda x: (x**3).sum() * x[0, 0])(m(W)),
    "jvp of grad": lambda t, f, m: f.jvp(f.grad(lambda x: (x**3).sum()), (m(W),), (m(W),)),
    "closed over": closed_over,
    "per sample": per_sample,
    "ensemble": ensemble,
}


@pytest.mark.parametrize("name", CASES)
def test_against_pytorch(name):
    wanted = values_of(CASES[name](torch, torch.func, torch.tensor))
    found = values_of(CASES[name](flow, func, flow.tensor))
    assert [x.shape for x in found] == [x.shape for x in wanted]
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def test_gradient_through_a_transform_inside_a_program():
    def step(w, x):
        h = w * 2
        loss = func.vmap(lambda x: (x @ h).sin())(x).sum()
        return flow.autograd.grad(loss, w)[0]

    w = flow.tensor(W, requires_grad=True)
    wanted = closed_over(torch, torch.func, torch.tensor)
    np.testing.assert_allclose(flow.compile(step)(w, flow.tensor(X)).numpy(), wanted.numpy(), rtol=1e-5)


def test_global_tensors():
    grid = flow.placement("cpu", [[0, 1], [2, 3]])
    x = flow.tensor(X, placement=grid, sbp=["S0", "B"])
    w = flow.tensor(W, placement=grid, sbp=["B", "S1"])
    grads = func.vmap(func.grad(lambda w, x: ((x @ w) ** 2).sum()), in_dims=(None, 0))(w, x)
    assert grads.sbp == (flow.sbp.split(0), flow.sbp.split(2))  # a gradient per example lies with its example
    wanted = CASES["vmap of grad"](torch, torch.func, torch.tensor)
    np.testing.assert_allclose(grads.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)


def test_a_program_met_before_is_not_compiled_again(compilations):
    x = flow.tensor(X)
    run = lambda: func.vmap(lambda row: row.exp().sum())(x)  # noqa: E731  # a new function every time
    first = run()
    with compilations as c:
        assert run().tolist() == first.tolist()
    assert c.count == 0


def test_randomness():
    x = flow.zeros(4, 3)
    draw = lambda row: row + flow.rand(3)  # noqa: E731
    with pytest.raises(RuntimeError, match="random"):
        func.vmap(draw)(x)
    same = func.vmap(draw, randomness="same")(x)
    different = func.vmap(draw, randomness="different")(x)
    assert (same == same[0]).all() and not (different[1:] == different[0]).any()
    flow.manual_seed(3)
    first = func.vmap(draw, randomness="different")(x)
    second = func.vmap(draw, randomness="different")(x)
    flow.manual_seed(3)
    assert (func.vmap(draw, randomness="different")(x) == first).all() and (first != second).all()


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda t, f: f.vmap(lambda x: x, in_dims=(0, 0))(t.ones(2)), ValueError),
        (lambda t, f: f.vmap(lambda x: x, in_dims=None)(t.ones(2)), ValueError),
        (lambda t, f: f.vmap(lambda x: x, in_dims=2)(t.ones(2)), ValueError),
        (lambda t, f: f.vmap(lambda x, y: x)(t.ones(2), t.ones(3)), ValueError),
        (lambda t, f: f.vmap(lambda x: 3)(t.ones(2)), ValueError),
        (lambda t, f: f.vmap(lambda x: x, randomness="maybe")(t.ones(2)), (ValueError, RuntimeError)),
        (lambda t, f: f.grad(lambda x: x)(t.ones(2)), RuntimeError),
        (lambda t, f: f.grad(lambda x: x.sum(), argnums=1)(t.ones(2)), RuntimeError),
        (lambda t, f: f.grad(lambda x: x.sum(), has_aux=True)(t.ones(2)), (RuntimeError, TypeError, ValueError)),
        (lambda t, f: f.jvp(lambda x: x, t.ones(2), t.ones(2)), RuntimeError),
        (lambda t, f: f.jvp(lambda x: x, (t.ones(2),), (t.ones(3),)), RuntimeError),
        (lambda t, f: f.functional_call(t.nn.Linear(1, 1), {"w": t.ones(1)}, t.ones(1), strict=True), RuntimeError),
    ],
)
def test_misuse_raises_pytorch_s_type(call, error):
    with pytest.raises(error):
        call(torch, torch.func)
    with pytest.raises(error) as caught:
        call(flow, func)
    assert "fix:" in str(caught.value)


def test_a_vmapped_function_may_not_write_outside():
    outside = flow.zeros(3)
    with pytest.raises(RuntimeError, match="writes a tensor"):
        func.vmap(lambda x: outside.add_(x).sum())(flow.tensor(X))
    assert outside.tolist() == [0, 0, 0]


def test_functional_call_writes_given_buffers_and_ties_weights():
    for t, f in ((torch, torch.func), (flow, func)):
        norm = t.nn.BatchNorm1d(2)
        state = {k: v.detach().clone() for k, v in norm.state_dict().items()}
        f.functional_call(norm, state, (t.ones(4, 2),))
        assert state["running_mean"].tolist() == pytest.approx([0.1, 0.1]) and norm.running_mean.tolist() == [0, 0]
        tied = t.nn.Sequential(t.nn.Linear(1, 1, bias=False), t.nn.Linear(1, 1, bias=False))
        tied[1].weight = tied[0].weight
        assert f.functional_call(tied, {"0.weight": t.tensor([[3.0]])}, t.ones(1, 1)).tolist() == [[9.0]]


def requiring(library):
    """Return which results of transforms require grad."""
    x, r = library.ones(3), library.ones(3, requires_grad=True)
    grad, vjp = library.func.grad, library.func.vjp

    def cube(y):
        return (y**3).sum()

    seen = [grad(cube)(x), grad(cube)(r), grad(lambda y: (y * y * r).sum())(x), grad(lambda y: y.sum())(r)]
    seen += [grad(lambda y: grad(cube)(y).sum())(x), grad(lambda y: grad(cube)(y).sum())(r)]
    for value in (x, r):
        out, pull = vjp(cube, value)
        seen += [out, pull(library.tensor(1.0))[0]]
    return [y.requires_grad for y in seen]


def test_results_require_grad_only_for_what_lies_outside():
    assert requiring(flow) == requiring(torch)
