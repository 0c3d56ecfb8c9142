"""`autograd.functional` and `gradcheck` against PyTorch's."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.errors import AutogradError

X = np.random.default_rng(0).standard_normal((2, 3))
Y = np.random.default_rng(1).standard_normal((3,))


def leaves(value):
    return [v for item in value for v in leaves(item)] if isinstance(value, (tuple, list)) else [value.detach().numpy()]


def F(t):
    return __import__(f"{t.__name__}.autograd.functional", fromlist=["functional"])


CASES = {
    "jacobian": lambda t, m: F(t).jacobian(lambda x: x.exp().sum(1), m(X)),
    "jacobian, several": lambda t, m: F(t).jacobian(lambda x, y: (x * y, y.sum()), (m(X), m(Y))),
    "jacobian, vectorized": lambda t, m: F(t).jacobian(lambda x, y: (x * y).sin(), (m(X), m(Y)), vectorize=True),
    "hessian": lambda t, m: F(t).hessian(lambda x: (x**3).sum() * x[0, 0], m(X)),
    "hessian, several": lambda t, m: F(t).hessian(lambda x, y: ((x * y) ** 2).sum(), (m(X), m(Y))),
    "vjp": lambda t, m: F(t).vjp(lambda x: x.exp().sum(1), m(X), m(X[:, 0].copy())),
    "vjp, scalar": lambda t, m: F(t).vjp(lambda x: x.exp().sum(), m(X)),
    "jvp": lambda t, m: F(t).jvp(lambda x, y: (x * y, (x @ y).sin()), (m(X), m(Y)), (m(X * 2), m(Y + 1))),
    "jvp, linear": lambda t, m: F(t).jvp(lambda x: x.sum(0), m(X), m(X)),
    "vhp": lambda t, m: F(t).vhp(lambda x, y: ((x * y) ** 3).sum(), (m(X), m(Y)), (m(X), m(Y))),
    "hvp": lambda t, m: F(t).hvp(lambda x: (x**3).sum() * x[0, 1], m(X), m(X)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_against_pytorch(name):
    wanted, found = leaves(CASES[name](torch, torch.tensor)), leaves(CASES[name](flow, flow.tensor))
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in wanted]
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def test_python_that_asks_for_values_can_be_differentiated():
    def branching(x):
        return x * 3 if x.sum() > 0 else x * 5

    for sign, factor in ((1, 3), (-1, 5)):
        jacobian = flow.autograd.functional.jacobian(branching, sign * flow.ones(2))
        assert jacobian.tolist() == [[factor, 0], [0, factor]]


@pytest.mark.parametrize("t", [torch, flow], ids=["torch", "sbpjax"])
def test_graphs_and_strictness(t):
    x = t.tensor([1.0, 2.0], requires_grad=True)
    jacobian = F(t).jacobian(lambda v: v**3, x, create_graph=True)
    jacobian.sum().backward()
    assert x.grad.tolist() == [6, 12]
    assert not F(t).jacobian(lambda v: v**3, x).requires_grad
    with pytest.raises(RuntimeError, match="independent"):
        F(t).vjp(lambda a, b: a.sum(), (x, x), strict=True)
    with pytest.raises(RuntimeError):
        F(t).hessian(lambda v: v, x)
    with pytest.raises(RuntimeError):
        F(t).vjp(lambda v: v, x)
    with pytest.raises(TypeError):
        F(t).vjp(lambda v: v, 3)


class Wrong:
    def __new__(cls, t):
        class Function(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * x

            @staticmethod
            def backward(ctx, grad):
                return grad * 3

        return Function


@pytest.mark.parametrize("t", [torch, flow], ids=["torch", "sbpjax"])
def test_gradcheck(t):
    x = t.tensor(X, requires_grad=True)
    assert t.autograd.gradcheck(lambda v: (v.sin(), v.exp().sum(0)), (x,))
    assert t.autograd.gradcheck(lambda v, w: v @ w, (x, t.tensor(Y)))
    assert t.autograd.gradgradcheck(lambda v: v**3, (x,))
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        t.autograd.gradcheck(Wrong(t).apply, (x,))
    assert not t.autograd.gradcheck(Wrong(t).apply, (x,), raise_exception=False)
    z = t.tensor([1 + 2j, 0.5 - 1j], dtype=t.complex128, requires_grad=True)
    assert t.autograd.gradcheck(lambda v: v * v, (z,))
    with pytest.raises((RuntimeError, ValueError)):
        t.autograd.gradcheck(lambda v: v, (t.tensor(X),))


def test_grad_of_several_gradients_at_once():
    found = []
    for library in (flow, torch):
        x = library.tensor([0.0, 1.0, 2.0], requires_grad=True)
        y = library.stack([x**2, 3 * x])
        cotangents = library.eye(3).unsqueeze(1).expand(3, 2, 3)
        (rows,) = library.autograd.grad(y, x, cotangents, only_inputs=True, is_grads_batched=True)
        found.append(rows.tolist())
    assert found[0] == found[1] == [[3.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 7.0]]
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(AutogradError, match="first dim of one size"):
        flow.autograd.grad([x * 2, x * 3], x, [flow.ones(2, 2), flow.ones(3, 2)], is_grads_batched=True)
