"""Gradients of rows: what ``weight.grad`` holds after a sparse lookup, sums with others, and numbers of PyTorch's."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tensor.tape.row_grad import RowGrad
from sbpjax.nn import functional as F

ROWS, WIDTH = 20, 4
TABLE = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32)
IDS = np.random.default_rng(1).integers(0, 10, (5, 3))


def both(**options):
    ours = nn.Embedding(ROWS, WIDTH, sparse=True, _weight=flow.tensor(TABLE), **options)
    return ours, torch.nn.Embedding(ROWS, WIDTH, sparse=True, _weight=torch.tensor(TABLE), **options)


def same(ours, theirs):
    theirs = theirs.to_dense() if theirs.is_sparse else theirs
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("padding_idx", [None, 3, -17])
def test_a_sparse_lookup_gives_numbers_and_rows(padding_idx):
    ours, theirs = both(padding_idx=padding_idx)
    (ours(flow.tensor(IDS)) ** 2).sum().backward()
    (theirs(torch.tensor(IDS)) ** 2).sum().backward()
    grad = ours.weight.grad
    assert grad.__class__ is RowGrad and grad.is_sparse and grad.shape == (ROWS, WIDTH) and grad.dtype == flow.float32
    assert grad.ids.shape == (15,) and grad.rows.shape == (15, WIDTH)
    assert repr(grad) == "RowGrad([15] rows of float32[20, 4])"
    same(grad.to_dense(), theirs.weight.grad)
    once = grad.coalesce()
    expected = theirs.weight.grad.coalesce()
    count = expected.indices().shape[1]
    assert once.ids.numpy()[:count].tolist() == expected.indices()[0].tolist() and once.coalesce() is once
    same(once.rows[:count], expected.values())


def test_two_lookups_stand_one_behind_the_other_and_steps_add_up():
    ours, theirs = both()
    for _ in range(2):
        (ours(flow.tensor(IDS)).sum() + (ours(flow.tensor(IDS[:2])) ** 2).sum()).backward()
        (theirs(torch.tensor(IDS)).sum() + (theirs(torch.tensor(IDS[:2])) ** 2).sum()).backward()
    assert ours.weight.grad.rows.shape == (2 * (15 + 6), WIDTH)
    same(ours.weight.grad.to_dense(), theirs.weight.grad)


@pytest.mark.parametrize("dense_first", [False, True])
def test_beside_a_dense_gradient_it_becomes_dense(dense_first):
    ours, theirs = both()
    for lookup in (not dense_first, dense_first):
        (ours(flow.tensor(IDS)) if lookup else ours.weight**2).sum().backward()
        (theirs(torch.tensor(IDS)) if lookup else theirs.weight**2).sum().backward()
    same(ours.weight.grad, theirs.weight.grad)
    ours, theirs = both()
    (F.linear(ours(flow.tensor(IDS)), ours.weight) ** 2).sum().backward()  # a tied projection, in one backward
    (torch.nn.functional.linear(theirs(torch.tensor(IDS)), theirs.weight) ** 2).sum().backward()
    np.testing.assert_allclose(ours.weight.grad.numpy(), theirs.weight.grad.to_dense().numpy(), rtol=1e-5, atol=1e-5)


def test_what_is_no_leaf_or_differentiated_by_jax_has_a_dense_gradient():
    ours, _ = both()
    F.embedding(flow.tensor(IDS), ours.weight * 2, sparse=True).sum().backward()
    assert isinstance(ours.weight.grad, flow.Tensor)
    grad = flow.func.grad(lambda w: F.embedding(flow.tensor(IDS), w, sparse=True).sum())(ours.weight)
    np.testing.assert_array_equal(2 * grad.numpy(), ours.weight.grad.numpy())
    ours.weight.grad = None
    by_frequency = F.embedding(flow.tensor(IDS), ours.weight, scale_grad_by_freq=True, sparse=True)
    by_frequency.sum().backward()
    assert isinstance(ours.weight.grad, flow.Tensor)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    ours = nn.EmbeddingBag(ROWS, WIDTH, mode=mode, sparse=True, padding_idx=2, _weight=flow.tensor(TABLE))
    theirs = torch.nn.EmbeddingBag(ROWS, WIDTH, mode=mode, padding_idx=2, _weight=torch.tensor(TABLE))
    for arguments in ((IDS,), (IDS.reshape(-1), np.array([0, 4, 9]))):
        ours.weight.grad = theirs.weight.grad = None
        (ours(*map(flow.tensor, arguments)) ** 2).sum().backward()
        (theirs(*map(torch.tensor, arguments)) ** 2).sum().backward()
        assert ours.weight.grad.__class__ is RowGrad
        same(ours.weight.grad.to_dense(), theirs.weight.grad)


def test_tables_of_one_size_in_one_weight():
    tables = np.random.default_rng(2).standard_normal((3, ROWS, WIDTH)).astype(np.float32)
    weight = nn.Parameter(flow.tensor(tables))
    out = F.embedding(flow.tensor(IDS), weight, padding_idx=4, sparse=True)
    np.testing.assert_array_equal(out.detach().numpy(), tables[np.arange(3), IDS])
    (out**2).sum().backward()
    grad = weight.grad.to_dense().numpy()
    expected = np.zeros_like(tables)
    np.add.at(expected, (np.arange(3), IDS), np.where(IDS == 4, 0, 2)[..., None] * tables[np.arange(3), IDS])
    np.testing.assert_allclose(grad, expected, rtol=1e-6)
    dense = nn.Parameter(flow.tensor(tables))
    (F.embedding(flow.tensor(IDS), dense, padding_idx=4) ** 2).sum().backward()
    np.testing.assert_allclose(grad, dense.grad.numpy(), rtol=1e-6)
    for wrong, output in ((IDS[:, :2], "a number for each of the 3 tables"), (IDS + ROWS, "every number is in")):
        with pytest.raises((RuntimeError, IndexError), match=output):
            F.embedding(flow.tensor(wrong), weight)


def test_zeroing_drops_it():
    for set_to_none in (False, True, None):
        ours, _ = both()
        ours(flow.tensor(IDS)).sum().backward()
        optimizer = flow.optim.SGD(ours.parameters(), lr=0.1)
        optimizer.zero_grad(set_to_none)
        assert ours.weight.grad is None
        optimizer.step()
