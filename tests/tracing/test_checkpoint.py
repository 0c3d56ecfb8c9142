"""checkpoint: the same values and gradients as without it, random numbers included, local and global."""

import numpy as np
import pytest

import sbpjax
from sbpjax import nn
from sbpjax.autograd import checkpoint

WHERE = {"local": {}, "S0": {"placement": "p", "sbp": "S0"}, "B": {"placement": "p", "sbp": "B"}}


def _where(options):
    return {k: sbpjax.placement("cpu", range(4)) if v == "p" else v for k, v in options.items()}


def _tensors(options):
    x = sbpjax.tensor(np.linspace(-1, 1, 32).reshape(8, 4), dtype=sbpjax.float32, **_where(options)).requires_grad_()
    w = sbpjax.tensor(np.linspace(0, 1, 16).reshape(4, 4), dtype=sbpjax.float32, **_where(options)).requires_grad_()
    return x, w


def _block(x, w):
    h = (x @ w).relu()
    return nn.functional.dropout(h, 0.5) * x, h.exp()


@pytest.mark.parametrize("options", WHERE.values(), ids=WHERE.keys())
def test_same_as_without(options):
    grads = []
    for run in (lambda f, *a: f(*a), checkpoint):
        x, w = _tensors(options)
        sbpjax.manual_seed(4)
        y, z = run(_block, x * 2, w)
        sbpjax.rand(3)  # the stream goes on in between
        (y.sum() + z.mean()).backward()
        grads.append((y.numpy(), x.grad.numpy(), w.grad.numpy(), sbpjax.rand(2).tolist()))
    for a, b in zip(*grads):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_saves_only_inputs():
    x = sbpjax.ones(8, requires_grad=True)
    y = checkpoint(lambda x: x.exp().sin().cos(), x)
    assert y.grad_fn.name() == "checkpoint_backward" and y.grad_fn.next_functions[0][0].variable is x


def test_closed_over_leaf_and_module():
    layer = nn.Linear(4, 4)
    x = sbpjax.ones(2, 4, requires_grad=True)
    checkpoint(layer, x).sum().backward()
    want = [p.grad.clone() for p in layer.parameters()]
    for p in layer.parameters():
        p.grad = None
    checkpoint(lambda x: layer(x), x).sum().backward()
    for p, w in zip(layer.parameters(), want):
        assert sbpjax.equal(p.grad, w)
    found = sbpjax.autograd.grad(checkpoint(layer, x).sum(), list(layer.parameters()))
    for g, w in zip(found, want):
        assert sbpjax.equal(g, w)


def test_nested_and_double():
    x = sbpjax.tensor([0.3, 0.7], requires_grad=True)
    y = checkpoint(lambda a: checkpoint(lambda b: b**3, a) * a, x)
    (g,) = sbpjax.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), 4 * x.detach().numpy() ** 3, rtol=1e-6)
    g.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 12 * x.detach().numpy() ** 2, rtol=1e-6)


def test_freed_and_retained():
    x = sbpjax.ones(2, requires_grad=True)
    y = checkpoint(lambda a: a * a, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(sbpjax.errors.AutogradError, match="retain_graph"):
        y.backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_no_grad_runs_plainly():
    with sbpjax.no_grad():
        assert not checkpoint(lambda a: a * 2, sbpjax.ones(2, requires_grad=True)).requires_grad
