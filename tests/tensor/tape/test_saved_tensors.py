"""`autograd.graph`: what hooks see and give back, against PyTorch, on one device and on a placement."""

import gc
import weakref

import numpy as np
import pytest
import torch

import sbpjax as flow

X = np.random.default_rng(0).standard_normal((4, 3)).astype("f")


@pytest.mark.parametrize("t", [torch, flow], ids=["torch", "sbpjax"])
def test_saved_tensors_go_through_the_hooks(t):
    packed, unpacked = [], []

    def pack(x):
        packed.append(tuple(x.shape))
        return x.detach().clone() * 2

    def unpack(x):
        unpacked.append(tuple(x.shape))
        return x / 2

    x = t.tensor(X, requires_grad=True)
    w = t.tensor(X.T.copy(), requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = (x @ w).sum()
    assert sorted(packed) == [(3, 4), (4, 3)] and not unpacked
    loss.backward()
    assert sorted(unpacked) == [(3, 4), (4, 3)]
    np.testing.assert_allclose(x.grad.numpy(), np.tile(X.sum(0), (4, 1)), rtol=1e-5)
    with pytest.raises(RuntimeError):
        loss.backward()
    (x * x).sum().backward()
    assert len(packed) == 2


@pytest.mark.parametrize("t", [torch, flow], ids=["torch", "sbpjax"])
def test_functions_inner_contexts_and_refusals(t):
    seen = []

    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    x = t.tensor([2.0], requires_grad=True)
    hooks = t.autograd.graph.saved_tensors_hooks
    with hooks(lambda v: seen.append("outer") or v, lambda v: v):
        with hooks(lambda v: seen.append("inner") or v, lambda v: v):
            y = Cube.apply(x)
        z = y.exp()
    assert seen == ["inner", "outer"]
    y.backward()
    assert x.grad.tolist() == [12.0] and z.requires_grad
    with t.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        with hooks(lambda v: v, lambda v: v):
            pass


def test_nothing_else_keeps_what_was_packed():
    x = flow.tensor(X, requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(lambda v: v.numpy().copy(), flow.from_numpy):
        y = x * 2
        alive = weakref.ref(y)
        loss = y.exp().sum()
    del y
    gc.collect()
    assert alive() is None
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * X), rtol=1e-5)


def test_double_backward_and_global_tensors():
    grid = flow.placement("cpu", [0, 1])
    layouts = []
    x = flow.tensor(X, placement=grid, sbp="S0").requires_grad_()
    with flow.autograd.graph.saved_tensors_hooks(lambda v: layouts.append(v.sbp) or v, lambda v: v):
        y = (x**3).sum()
    (g,) = flow.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    assert layouts == [(flow.sbp.split(0),)]
    np.testing.assert_allclose(x.grad.numpy(), 6 * X, rtol=1e-5)


@pytest.mark.parametrize("t", [torch, flow], ids=["torch", "sbpjax"])
def test_save_on_cpu_and_hooks_on_several_gradients(t):
    x = t.tensor(X, requires_grad=True)
    w = t.tensor(X, requires_grad=True)
    seen = []
    handle = t.autograd.graph.register_multi_grad_hook([x, w], lambda grads: seen.append(len(grads)))
    with t.autograd.graph.save_on_cpu():
        loss = (x * w).exp().sum()
    loss.backward()
    assert seen == [2]
    handle.remove()
    (x * w).sum().backward()
    assert seen == [2]
