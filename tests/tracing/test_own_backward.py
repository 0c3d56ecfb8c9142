"""An `autograd.Function` under transforms keeps the user's backward."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import func, nn

X = np.linspace(-3, 3, 12).astype("f").reshape(4, 3)


def straight_through(t):
    class Round(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            return t.round(x * scale) / scale

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (x.abs() < 2), None

    return Round


def expected():
    x = torch.tensor(X, requires_grad=True)
    (straight_through(torch).apply(x, 4.0) ** 2).sum().backward()
    return x.grad.numpy()


def loss(x):
    return (straight_through(flow).apply(x, 4.0) ** 2).sum()


@pytest.mark.parametrize("where", ["local", "S0"])
def test_in_a_compiled_function(where):
    x = flow.tensor(X) if where == "local" else flow.tensor(X, placement=flow.placement("cpu", [0, 1]), sbp=where)
    x.requires_grad_()
    func.compile_function(loss)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), expected(), rtol=1e-6)


def test_through_vmap_and_in_jacobians():
    x = flow.tensor(X, requires_grad=True)
    func.vmap(loss)(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected(), rtol=1e-6)
    np.testing.assert_allclose(func.jacrev(loss)(flow.tensor(X)).numpy(), expected(), rtol=1e-6)
    np.testing.assert_allclose(func.vmap(func.grad(loss))(flow.tensor(X)).numpy(), expected(), rtol=1e-6)


def test_behind_a_layer_in_a_compiled_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3, bias=False)

        def forward(self, x):
            return loss(self.layer(x))

    model = Model()
    model(flow.tensor(X)).backward()
    wanted = model.layer.weight.grad.clone()
    model.zero_grad()
    func.compile_function(model)(flow.tensor(X)).backward()
    assert wanted.abs().sum() > 0
    np.testing.assert_allclose(model.layer.weight.grad.numpy(), wanted.numpy(), rtol=1e-5)
