"""Reading and writing by index, and matrices put together. An index may be split like what it reads, dim by dim."""

from __future__ import annotations

from ..table import FN, INPLACE, METHOD, op, written

READ = FN | METHOD
WRITE = READ | INPLACE

op("put(input, index, source, accumulate=False)", "place.put", WRITE, check="index_of_elements", out=False)
op("index_reduce(input, dim, index, source, reduce, *, include_self=True)", "place.index_reduce", WRITE,
   check="index_in_dim")  # fmt: skip
op("batch_gather(input, indices)", "place.batch_gather", READ, names={"in": "input"}, check="index_in_batch", out=False)
op("diagonal_scatter(input, src, offset=0, dim1=0, dim2=1)", "place.diagonal_scatter", READ)
op("select_scatter(input, src, dim, index)", "place.select_scatter", READ)
op("slice_scatter(input, src, dim=0, start=None, end=None, step=1)", "place.slice_scatter", READ)
op("fill_diagonal(input, fill_value, wrap=False)", "place.fill_diagonal", INPLACE)
op("diagflat(input, offset=0)", "place.diagflat", READ)
op("block_diag(*tensors)", "place.block_diag", out=False)
op("cartesian_prod(*tensors)", "place.cartesian_prod", out=False)
op("combinations(input, r=2, with_replacement=False)", "place.combinations", strict=True, out=False)
op("constant_pad_nd(input, pad, value=0)", "arrange.pad", out=False)
op("in_top_k(targets, predictions, k)", "embedding.in_top_k", READ, also="_C.in_top_k", out=False)
written("tril_indices triu_indices", "sbpjax.functions.making", strict=True)
