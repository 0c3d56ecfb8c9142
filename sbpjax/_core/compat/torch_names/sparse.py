"""`torch.sparse`: COO and CSR matrices, made of an index tensor and values, and their products with dense ones.

    a = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    a @ dense                            # (2, d): rows of `dense` gathered, scaled and summed

A sparse tensor is no `Tensor`: it has what graph networks use of one. The ops are gathers and sums of dense tensors, so
gradients go to values and to the dense factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sbpjax._core import functions
from sbpjax._core.functions.settings import sparse_coo, sparse_csr
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.from_data import tensor
from sbpjax._core.tensor.handle.dtype import int64
from sbpjax._core.tensor.handle.size import Size
from sbpjax.errors import OpError, OpTypeError


class SparseTensor:
    """A sparse tensor.

    Args:
        index: `(sparse dims, n)`, int64: the positions of the values.
        values: `(n, *dense dims)`.
        size: the sizes of all dims.
        layout: `sparse_coo` or `sparse_csr`.
        is_coalesced: whether positions are unique and in order.
    """

    is_sparse = True
    is_global = False

    def __init__(self, index: Tensor, values: Tensor, size: Sequence[int], layout: Any, is_coalesced: bool) -> None:
        self._index, self._entries, self.shape, self.layout = index, values, Size(size), layout
        self._is_coalesced = is_coalesced
        self.dtype, self.device = values.dtype, values.device

    @property
    def is_sparse_csr(self) -> bool:
        """Whether it is a CSR matrix."""
        return self.layout is sparse_csr

    @property
    def requires_grad(self) -> bool:
        """Whether the values require gradients."""
        return self._entries.requires_grad

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    def dim(self) -> int:
        """Return the number of dims."""
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the sizes, or that of a dim."""
        return self.shape if dim is None else self.shape[dim]

    def _nnz(self) -> int:
        return self._entries.shape[0]

    def indices(self) -> Tensor:
        """Return the positions, `(dims, n)`, of a coalesced COO tensor."""
        self._require(self._is_coalesced, "indices() of an uncoalesced tensor", "x.coalesce().indices()")
        return self._index

    def values(self) -> Tensor:
        """Return the values of a coalesced tensor."""
        self._require(self._is_coalesced, "values() of an uncoalesced tensor", "x.coalesce().values()")
        return self._entries

    def _indices(self) -> Tensor:
        return self._index

    def _values(self) -> Tensor:
        return self._entries

    def crow_indices(self) -> Tensor:
        """Return the number of values before each row and the number of all, of a CSR matrix."""
        self._require(self.is_sparse_csr, "crow_indices() of a COO tensor", "x.to_sparse_csr().crow_indices()")
        rows = functions.zeros(self.shape[0] + 1, dtype=int64)
        return rows.index_add(0, self._index[0] + 1, functions.ones_like(self._index[0])).cumsum(0)

    def col_indices(self) -> Tensor:
        """Return the columns of the values of a CSR matrix."""
        self._require(self.is_sparse_csr, "col_indices() of a COO tensor", "x.to_sparse_csr().col_indices()")
        return self._index[1]

    def _require(self, holds: bool, seen: str, fix: str) -> None:
        if not holds:
            rule = "a COO tensor has positions and values once coalesced, a CSR matrix has rows and columns"
            raise OpError("a sparse tensor", seen, rule, fix)

    def is_coalesced(self) -> bool:
        """Return whether positions are unique and in order."""
        return self._is_coalesced

    def coalesce(self) -> SparseTensor:
        """Return the tensor with unique positions in order; values of equal positions are added."""
        if self._is_coalesced:
            return self
        sizes = self.shape[: self._index.shape[0]]
        flat = np.ravel_multi_index(tuple(self._index.numpy()), sizes)
        unique, where = np.unique(flat, return_inverse=True)
        index = tensor(np.stack(np.unravel_index(unique, sizes)), dtype=int64)
        start = self._entries.new_zeros((len(unique), *self._entries.shape[1:]))
        values = start.index_add(0, tensor(where.reshape(-1), dtype=int64), self._entries)
        return SparseTensor(index, values, self.shape, self.layout, True)

    def to_dense(self) -> Tensor:
        """Return the dense tensor."""
        zeros = self._entries.new_zeros(tuple(self.shape))
        return zeros.index_put(tuple(self._index), self._entries, accumulate=True)

    def to_sparse(self, *args: Any, layout: Any = None) -> SparseTensor:
        """Return it as COO, or in a layout."""
        return self.to_sparse_csr() if layout is sparse_csr else self._with(layout=sparse_coo)

    def to_sparse_coo(self) -> SparseTensor:
        """Return it as COO."""
        return self._with(layout=sparse_coo)

    def to_sparse_csr(self) -> SparseTensor:
        """Return the matrix as CSR."""
        self._require(self.ndim == 2, f"{self.ndim} dims as CSR", "a matrix")
        return self.coalesce()._with(layout=sparse_csr)

    def _with(self, values: Tensor | None = None, layout: Any = None) -> SparseTensor:
        entries = self._entries if values is None else values
        return SparseTensor(self._index, entries, self.shape, layout or self.layout, self._is_coalesced)

    def t(self) -> SparseTensor:
        """Return the transposed matrix, as COO."""
        return SparseTensor(self._index.flip(0), self._entries, self.shape[::-1], sparse_coo, False)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Return the transposed matrix, as COO."""
        return self.t() if dim0 % 2 != dim1 % 2 else self

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Let the values require gradients."""
        self._entries.requires_grad_(requires_grad)
        return self

    def to(self, *args: Any, **options: Any) -> SparseTensor:
        """Cast or move the values."""
        return self._with(self._entries.to(*args, **options))

    def cuda(self, *args: Any) -> SparseTensor:
        """Move the values to a GPU."""
        return self._with(self._entries.cuda(*args))

    def __matmul__(self, other: Any) -> Tensor:
        return mm(self, other)

    matmul = mm = __matmul__

    def __mul__(self, other: float) -> SparseTensor:
        return self._with(self._entries * other)

    __rmul__ = __mul__

    def __add__(self, other: SparseTensor) -> SparseTensor:
        index = functions.cat([self._index, other._index], 1)
        values = functions.cat([self._entries, other._entries])
        return SparseTensor(index, values, self.shape, sparse_coo, False).coalesce()

    def __repr__(self) -> str:
        kind = "sparse_csr" if self.is_sparse_csr else "sparse_coo"
        return f"tensor(size={tuple(self.shape)}, nnz={self._nnz()}, dtype={self.dtype}, layout={kind})"


def _elementwise(name: str) -> Callable:
    def apply(self: SparseTensor) -> SparseTensor:
        return self._with(getattr(self._entries, name)())

    apply.__doc__ = f"Return the tensor with `{name}` of its values."
    return apply


for _name in "float double half bfloat16 detach clone cpu abs neg sqrt sin tanh relu".split():
    setattr(SparseTensor, _name, _elementwise(_name))


def sparse_coo_tensor(
    indices: Any, values: Any, size: Any = None, *, dtype: Any = None, requires_grad: bool = False, **_: Any
) -> SparseTensor:
    """Return a COO tensor.

    Args:
        indices: `(dims, n)`, the positions.
        values: `(n, *dense dims)`.
        size: the sizes; by default the smallest that hold the positions.
        dtype: that of the values.
        requires_grad: whether the values require gradients.
    """
    index = indices if isinstance(indices, Tensor) else tensor(indices)
    entries = values if isinstance(values, Tensor) else tensor(values)
    if size is None:
        size = [*(int(row.max()) + 1 for row in index), *entries.shape[1:]]
    entries = entries if dtype is None else entries.to(dtype)
    made = SparseTensor(index.to(int64), entries, size, sparse_coo, False)
    return made.requires_grad_() if requires_grad else made


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, **_: Any
) -> SparseTensor:
    """Return a CSR matrix.

    Args:
        crow_indices: `(rows + 1,)`, the number of values before each row, and of all.
        col_indices: `(n,)`.
        values: `(n,)`.
        size: the sizes; by default the smallest that hold the positions.
        dtype: that of the values.
    """
    ends = crow_indices if isinstance(crow_indices, Tensor) else tensor(crow_indices)
    columns = (col_indices if isinstance(col_indices, Tensor) else tensor(col_indices)).to(int64)
    rows = tensor(np.repeat(np.arange(len(ends) - 1), np.diff(ends.numpy())), dtype=int64)
    entries = values if isinstance(values, Tensor) else tensor(values)
    size = size or (len(ends) - 1, int(columns.max()) + 1)
    index = functions.stack([rows, columns])
    return SparseTensor(index, entries if dtype is None else entries.to(dtype), size, sparse_csr, True)


def to_sparse(self: Tensor, *args: Any, layout: Any = None) -> SparseTensor:
    """Return the nonzero elements of a tensor as COO, or in a layout."""
    index = self.nonzero().t()
    found = SparseTensor(index, self[tuple(index)], self.shape, sparse_coo, True)
    return found.to_sparse_csr() if layout is sparse_csr else found


def to_sparse_csr(self: Tensor) -> SparseTensor:
    """Return the nonzero elements of a matrix as CSR."""
    return to_sparse(self, layout=sparse_csr)


def mm(sparse: Any, dense: Any, reduce: str = "sum") -> Tensor:
    """Return a sparse matrix times a dense matrix or vector.

    Args:
        sparse: `(m, k)`.
        dense: `(k, d)` or `(k,)`; a sparse one is made dense.
        reduce: `"sum"`, `"mean"`, `"amax"` or `"amin"` of the products of a row.

    Returns:
        `(m, d)` or `(m,)`, dense.
    """
    if not isinstance(sparse, SparseTensor):
        seen, rule = f"a {type(sparse).__name__}", "the first factor is a sparse matrix"
        raise OpTypeError("torch.sparse.mm(sparse, dense)", seen, rule, "x.to_sparse()")
    dense = dense.to_dense() if isinstance(dense, SparseTensor) else dense
    if sparse.shape[1] != dense.shape[0]:
        rule = f"mat1 and mat2 shapes cannot be multiplied ({sparse.shape[0]}x{sparse.shape[1]} and {dense.shape[0]})"
        raise OpError("torch.sparse.mm(sparse, dense)", f"{tuple(dense.shape)}", rule, "transpose one of them")
    values = sparse._entries.reshape(-1, *(1,) * (dense.ndim - 1))
    products = values * dense[sparse._index[1]]
    start = products.new_zeros((sparse.shape[0], *dense.shape[1:]))
    if reduce == "sum":
        return start.index_add(0, sparse._index[0], products)
    return start.index_reduce(0, sparse._index[0], products, reduce, include_self=False)


spmm = dsmm = mm


def addmm(mat: Tensor, mat1: SparseTensor, mat2: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * mat + alpha * mat1 @ mat2``."""
    return beta * mat + alpha * mm(mat1, mat2)


def sum(input: SparseTensor, dim: int | None = None) -> Any:
    """Return the sum of all values, or dense sums along a dim of a matrix."""
    if dim is None:
        return input._entries.sum()
    kept = 1 - dim % 2
    return input._entries.new_zeros(input.shape[kept]).index_add(0, input._index[kept], input._entries)
