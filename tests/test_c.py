"""OneFlow's op-level functions against PyTorch's equivalents."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import errors

_RNG = np.random.default_rng(4)
A = _RNG.normal(size=(5, 4)).astype(np.float32)
W = _RNG.normal(size=(5, 4)).astype(np.float32)
X = _RNG.normal(size=(3, 4, 2)).astype(np.float32)
V = _RNG.normal(size=(4,)).astype(np.float32)
I = np.array([3, 0, -1], np.int64)
RTOL = 1e-5


def _close(got, want):
    np.testing.assert_allclose(got.numpy(), np.asarray(want), rtol=RTOL, atol=RTOL)


def test_matmul():
    a, w = flow.tensor(A), flow.tensor(W)
    _close(flow._C.matmul(a, w, transpose_b=True), A @ W.T)
    _close(flow._C.matmul(a, w, transpose_a=True, alpha=0.5), 0.5 * (A.T @ W))
    assert not flow._C.matmul(a, w, transpose_b=True).requires_grad


def test_add():
    a, w = flow.tensor(A), flow.tensor(W)
    _close(flow._C.add(a, w, alpha=2), A + 2 * W)
    _close(flow._C.add([a, w, a]), A + W + A)
    x = a.clone()
    assert flow._C.add(x, w, inplace=True) is x
    _close(x, A + W)
    assert flow._C.add([x, w, w], inplace=True) is x
    _close(x, A + 3 * W)


def test_bias_add_and_gather():
    _close(flow._C.bias_add(flow.tensor(X), flow.tensor(V), axis=1), X + V[:, None])
    _close(flow._C.bias_add(flow.tensor(A), flow.tensor(V), axis=-1), A + V)
    _close(flow._C.gather(flow.tensor(A), flow.tensor(I), axis=1), A[:, I])
    _close(flow._C.gather(flow.tensor(X), flow.tensor(I.reshape(3, 1) % 3), axis=0), X[I.reshape(3, 1) % 3])


def test_in_top_k():
    targets = np.array([0, 1, 2, 3, 0])
    want = [t in set(np.argsort(-row)[:2]) for t, row in zip(targets, A, strict=True)]
    assert flow._C.in_top_k(flow.tensor(targets), flow.tensor(A), 2).tolist() == want


@pytest.mark.parametrize("training", [False, True])
def test_normalization(training):
    mean, variance = np.zeros(4, np.float32), np.ones(4, np.float32)
    theirs = [torch.tensor(v) for v in (mean, variance)]
    ours = [flow.tensor(v) for v in (mean, variance)]
    want = torch.nn.functional.batch_norm(torch.tensor(X), *theirs, torch.tensor(V), torch.tensor(V), training)
    got = flow._C.normalization(flow.tensor(X), *ours, flow.tensor(V), flow.tensor(V), is_training=training)
    _close(got, want)
    for mine, other in zip(ours, theirs, strict=True):
        _close(mine, other)


def test_sparse_softmax_cross_entropy():
    labels = np.array([0, 1, 2, 3, 0])
    want = torch.nn.functional.cross_entropy(torch.tensor(A), torch.tensor(labels), reduction="none")
    _close(flow._C.sparse_softmax_cross_entropy(flow.tensor(A), flow.tensor(labels)), want)
    with pytest.raises(errors.OpError, match="depth is the number of classes"):
        flow._C.sparse_softmax_cross_entropy(flow.tensor(A), flow.tensor(labels), depth=7)


def test_broadcast_like():
    like = flow.zeros(3, 4, 2)
    _close(flow.broadcast_like(flow.tensor(V), flow.zeros(5, 4)), np.broadcast_to(V, (5, 4)))
    _close(flow.broadcast_like(flow.tensor(V), like, (0, 2)), np.broadcast_to(V[None, :, None], (3, 4, 2)))


def test_identity_keeps_layout_and_tape():
    where = flow.placement("cpu", [0, 1])
    x = flow.tensor(A).to_global(where, flow.sbp.split(0)).requires_grad_()
    y = flow._C.identity(x)
    assert y.sbp == x.sbp and y.grad_fn is not None
    y.sum().backward()
    _close(x.grad, np.ones_like(A))
