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


BINARY = {
    "mul": lambda t, a, b: a * b,
    "div": lambda t, a, b: a / b,
    "pow": lambda t, a, b: a**b,
    "atan2": lambda t, a, b: t.atan2(a, b),
    "maximum": lambda t, a, b: t.maximum(a, b),
    "mm": lambda t, a, b: a @ b,
    "bmm": lambda t, a, b: t.bmm(a[None], b[None]),
    "prelu": lambda t, a, b: t.nn.functional.prelu(a, b[0]),
    "linear": lambda t, a, b: t.nn.functional.linear(a, b, t.ones(2)),
    "a function": lambda t, a, b: _product(t).apply(a, b),
}


def _product(t):
    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    return Product


@pytest.mark.parametrize("name", BINARY)
def test_hooks_see_two_operands_in_the_order_of_pytorch(name):
    def events(t):
        found = []

        def hooks(level):
            def note(kind):
                return lambda v: found.append((level, kind, v.detach().reshape(-1)[0].item())) or v

            return t.autograd.graph.saved_tensors_hooks(note("pack"), note("unpack"))

        a, b = (t.tensor([[k, k], [k, k]], requires_grad=True) for k in (2.0, 5.0))
        with hooks("outer"), hooks("inner"):
            y = BINARY[name](t, a, b)
        y.sum().backward()
        # Results are saved there and computed anew here: the operands are compared.
        return [e for e in found if e[2] in (2.0, 5.0)], a.grad.numpy(), b.grad.numpy()

    (theirs, *slopes), (ours, *found) = events(torch), events(flow)
    assert ours == theirs and {level for level, *_ in ours} == {"inner"} and len(ours) == 4
    for a, b in zip(found, slopes):
        np.testing.assert_allclose(a, b, rtol=1e-5)


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
