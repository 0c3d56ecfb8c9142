"""`torch.sparse_coo_tensor` and CSR: values, products and gradients of PyTorch's own."""

import numpy as np
import pytest
import torch as real

from sbpjax import mock_torch

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")  # PyTorch's, once in a process

INDEX, VALUES = [[0, 1, 1, 2, 1], [2, 0, 2, 1, 0]], [3.0, 4.0, 5.0, -1.0, 2.0]
DENSE = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)


@pytest.fixture
def alias():
    with mock_torch.enable():
        import torch

        yield torch


@pytest.fixture(params=["alias", "pytorch"])
def torch(request):
    yield real if request.param == "pytorch" else request.getfixturevalue("alias")


def ours_and_pytorchs(function, *args):
    with mock_torch.enable():
        import torch

        ours = function(torch, *args)
    return zip(ours, function(real, *args), strict=True)


def products(torch, layout, reduce="sum"):
    """Return a product, the gradients of its factors, and the dense matrix."""
    values, dense = torch.tensor(VALUES, requires_grad=True), torch.tensor(DENSE, requires_grad=True)
    a = torch.sparse_coo_tensor(torch.tensor(INDEX), values, (3, 3)).coalesce()
    a = a.to_sparse_csr() if layout == "csr" else a
    out = a @ dense if reduce == "sum" else torch.sparse.mm(a, dense, reduce)
    (out * torch.arange(6.0).reshape(3, 2)).sum().backward()
    return [np.asarray(x.detach().numpy()) for x in (out, values.grad, dense.grad, a.to_dense())]


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_a_product_and_its_gradients_are_pytorchs(layout):
    for ours, wanted in ours_and_pytorchs(products, layout):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6)


@pytest.mark.parametrize("reduce", ["mean", "amax"])
def test_rows_are_reduced_as_pytorch_does(reduce):
    def reduced(torch):
        a = torch.sparse_coo_tensor(torch.tensor(INDEX), torch.tensor(VALUES), (3, 3)).coalesce().to_sparse_csr()
        return [torch.sparse.mm(a, torch.tensor(DENSE), reduce).numpy()]

    for ours, wanted in ours_and_pytorchs(reduced):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6)


def test_equal_positions_are_added_and_positions_put_in_order(torch):
    a = torch.sparse_coo_tensor(torch.tensor(INDEX), torch.tensor(VALUES), (3, 3))
    assert a.is_sparse and not a.is_coalesced() and a._nnz() == 5
    with pytest.raises(RuntimeError, match="uncoalesced"):
        a.indices()
    a = a.coalesce()
    assert a.indices().tolist() == [[0, 1, 1, 2], [2, 0, 2, 1]] and a.values().tolist() == [3.0, 6.0, 5.0, -1.0]
    csr = a.to_sparse_csr()
    assert csr.crow_indices().tolist() == [0, 1, 3, 4] and csr.col_indices().tolist() == [2, 0, 2, 1]
    again = torch.sparse_csr_tensor(csr.crow_indices(), csr.col_indices(), csr.values(), (3, 3))
    assert again.to_dense().tolist() == a.to_dense().tolist()


def test_a_dense_matrix_becomes_sparse_and_is_transposed(torch):
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0], [0.0, 1.0]])
    a = dense.to_sparse()
    assert a.indices().tolist() == [[0, 1, 2], [1, 0, 1]] and a.shape == (3, 2) and a.layout == torch.sparse_coo
    assert a.t().coalesce().to_dense().tolist() == dense.t().tolist()
    assert (a + a).to_dense().tolist() == (dense * 2).tolist() and torch.sparse.sum(a).item() == 6.0
    assert torch.sparse.sum(a, 0).to_dense().tolist() == [3.0, 3.0]
    assert torch.spmm(a, torch.ones(2, 1)).tolist() == [[2.0], [3.0], [1.0]]


def test_a_sparse_buffer_outside_the_state_is_kept_as_it_is(alias):
    torch, module = alias, alias.nn.Module()
    for n in (2, 3):
        module.register_buffer("mask", torch.eye(n).to_sparse(), persistent=False)
    assert module.mask.indices().shape == (2, 3) and not module.state_dict() and module.to(torch.float64) is module
    with pytest.raises(TypeError, match="cannot assign 'SparseTensor' as buffer"):
        module.register_buffer("saved", torch.eye(2).to_sparse())


def test_factors_that_do_not_fit_are_refused(alias):
    torch, a = alias, alias.eye(3).to_sparse()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        a @ torch.ones(2, 2)
    with pytest.raises(TypeError, match="the first factor is a sparse matrix"):
        torch.sparse.mm(torch.eye(3), torch.eye(3))
    with pytest.raises(RuntimeError, match="to_sparse_csr"):
        a.crow_indices()
