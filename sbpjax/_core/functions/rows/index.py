"""Op table: indexing ops (gather, scatter) and stacking. An index may be split like its tensor, dim by dim."""

from __future__ import annotations

from ..table.op_modules import arrange, embedding, gather, place
from ..table.table import FN, INPLACE, INPLACE_FN, METHOD, custom, op

SELECTION = "sbpjax._core.functions.selection"
READ = FN | METHOD
WRITE = READ | INPLACE

op("gather(input, dim, index, sparse_grad=False)", gather.gather, READ, ignores="sparse_grad",
   check="check_index",
   exact_out=True)  # fmt: skip
op("take_along_dim(input, indices, dim=None)", gather.take_along_dim, READ, check="check_dim_or_flat_index")
op("take(input, index)", gather.take, READ, check="check_flat_index", exact_out=True)
op("index_select(input, dim, index)", gather.index_select, READ, check="check_index", exact_out=True)
op("scatter(input, dim, index, src, *, reduce=None)", gather.scatter, WRITE, names={"value": "src"},
   check="check_index_and_source")  # fmt: skip
op(
    "scatter_add(input, dim, index, src)",
    gather.scatter_add,
    WRITE,
    check="check_index",
    amp="accelerator:widest",
)
op("scatter_reduce(input, dim, index, src, reduce, *, include_self=True)", gather.scatter_reduce, WRITE,
   check="check_index")  # fmt: skip
op("index_add(input, dim, index, source, alpha=1)", gather.index_add, WRITE | INPLACE_FN, check="check_index")
op("index_copy(input, dim, index, source)", gather.index_copy, WRITE, check="check_index", amp="cpu:widest")
op("index_fill(input, dim, index, value)", gather.index_fill, WRITE, check="check_index_and_value", out=False)
op("masked_fill(input, mask, value)", gather.masked_fill, WRITE | INPLACE_FN, check="check_masked_value", out=False)
op("masked_scatter(input, mask, source)", gather.masked_scatter, WRITE, check="check_masked_source", out=False)
op("gather_nd(input, index)", embedding.gather_nd, names={"params": "input", "indices": "index"},
   check="check_nd_index", out=False)  # fmt: skip
op("scatter_nd(index, update, shape)", embedding.scatter_nd, check="check_nd_index_in_shape", out=False)
op("tensor_scatter_nd_update(tensor, indices, updates)", embedding.tensor_scatter_nd_update,
   also="_C.tensor_scatter_nd_update", check="check_nd_indices", out=False)  # fmt: skip
custom("nonzero", SELECTION, READ, out=True)
custom("masked_select", SELECTION, READ, out=True)
custom("histc", SELECTION, READ, out=True)
custom("unique unique_consecutive bincount argwhere", SELECTION, READ)
custom("searchsorted bucketize", SELECTION, out=True)
op("nonzero_static(input, *, size, fill_value=-1)", embedding.nonzero_static, READ, check="check_nonnegative_size")
op("put(input, index, source, accumulate=False)", place.put, WRITE, check="check_flat_index", out=False)
op("index_reduce(input, dim, index, source, reduce, *, include_self=True)", place.index_reduce, WRITE,
   check="check_index")  # fmt: skip
op(
    "batch_gather(input, indices)",
    place.batch_gather,
    READ,
    names={"in": "input"},
    check="check_batch_index",
    out=False,
)
op("diagonal_scatter(input, src, offset=0, dim1=0, dim2=1)", place.diagonal_scatter, READ)
op("select_scatter(input, src, dim, index)", place.select_scatter, READ)
op("slice_scatter(input, src, dim=0, start=None, end=None, step=1)", place.slice_scatter, READ)
op(
    "fill_diagonal(input, fill_value, wrap=False)",
    place.fill_diagonal,
    INPLACE,
    check="check_fill_value",
    numbers="other",
)
op("diagflat(input, offset=0)", place.diagflat, READ)
op("block_diag(*tensors)", place.block_diag, out=False)
op("cartesian_prod(*tensors)", place.cartesian_prod, out=False)
op("combinations(input, r=2, with_replacement=False)", place.combinations, strict=True, out=False)
op("constant_pad_nd(input, pad, value=0)", arrange.pad, out=False)
op("in_top_k(targets, predictions, k)", embedding.in_top_k, READ, also="_C.in_top_k", out=False)
custom("tril_indices triu_indices", "sbpjax._core.functions.creation", strict=True)
