"""Table look-ups against torch, nd-gathers against NumPy."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.layers import embedding as em
from sbpjax.errors import OpAssertionError, OpError
from tests.ops.checker import BF16, A, B, F, I, case, run

IDS = np.array([[0, 2, 1], [2, 2, 4]])
CASES = [
    case(em.embedding, tf.embedding, x, F(5, 3), **a)
    for x in (IDS, np.asarray(3), I(0), IDS.astype(np.int32))
    for a in ({}, {"padding_idx": 2}, {"padding_idx": -1})
]
CASES += [
    case(em.embedding, tf.embedding, IDS, F(5, 3, dtype=BF16)),
    case(em.embedding, tf.embedding, IDS, F(5, 3), scale_grad_by_freq=True),
]
CASES += [case(em.one_hot, tf.one_hot, x, num_classes=5) for x in (IDS, np.asarray(3), I(0, 2))]
CASES += [
    case(em.bincount, lambda x, w, length: torch.bincount(x, w, length), I(9), w, length=7, grad=False)
    for w in (None, F(9), I(9), F(9, dtype=np.float64))
]
EDGES = A(-1, 0, 0, 0.5, 2)
VALUES = np.array([[-2, 0, 0.5], [3, np.nan, -1]], np.float32)
CASES += [case(em.searchsorted, torch.searchsorted, EDGES, VALUES, right=r, grad=False) for r in (False, True)] + [
    case(em.bucketize, torch.bucketize, F(4), EDGES, grad=False)
]
CASES += [
    case(em.searchsorted, torch.searchsorted, np.sort(F(2, 5), -1), F(2, 3), grad=False),
    case(em.searchsorted, torch.searchsorted, np.arange(5), 3),
    case(em.searchsorted, torch.searchsorted, np.arange(5), I(3)),
]
ND = np.array([[0, 1], [2, 3], [1, 0]])
CASES += [
    case(em.gather_nd, lambda x, i: x[tuple(i.unbind(-1))], F(3, 4, 5), i) for i in (ND, ND[:, :1], I(2, 2, 3, high=3))
]
CASES += [
    case(em.tensor_scatter_nd_update, lambda x, i, u: x.index_put(tuple(i.unbind(-1)), u), F(3, 4, 5), ND, F(3, 5))
]
CASES += [
    case(
        em.tensor_scatter_nd_add, lambda x, i, u: x.index_put(tuple(i.unbind(-1)), u, accumulate=True), F(3, 4), i, F(3)
    )
    for i in (ND, ND[[0, 0, 1]])
]
CASES += [
    case(
        em.scatter_nd,
        lambda i, u, shape: torch.zeros(shape).index_put(tuple(i.unbind(-1)), u, accumulate=True),
        ND[[0, 0, 1]][:, :1],
        F(3, 4),
        shape=(5, 4),
    )
]

test_against_torch = run(CASES)


@pytest.mark.parametrize(
    "x", [B(3, 4), I(2, 3, 2, high=2), B(5), np.zeros((2, 2), bool), F(0, 3)], ids=lambda x: str(x.shape)
)
def test_nonzero(x):
    want = np.argwhere(x)
    got = em.nonzero(x, size=len(want))
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, want)


def test_in_top_k():
    predictions = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1], [0.5, 0.5, 0.1]], np.float32)
    np.testing.assert_array_equal(em.in_top_k(np.array([2, 2, 1]), predictions, k=2), [True, False, True])


def test_one_hot_values():
    np.testing.assert_array_equal(
        em.one_hot(np.array([1]), num_classes=3, on_value=5.0, off_value=-1.0, dtype=np.dtype(np.float32)),
        [[-1, 5, -1]],
    )


def test_errors():
    with pytest.raises(OpError, match="int32 or int64"):
        em.embedding(F(3), F(5, 3))
    with pytest.raises(OpAssertionError, match="names a row"):
        em.embedding(IDS, F(5, 3), padding_idx=5)
    with pytest.raises(OpError, match="1 dim"):
        em.bincount(I(2, 2), length=3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_a_nan_stays_in_its_bag(mode):
    table = np.eye(5, 3, dtype=np.float32)
    table[2] = np.nan
    found = np.asarray(em.embedding_bag(np.array([2, 0, 4, 3]), table, np.array([0, 1]), mode=mode))
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()
