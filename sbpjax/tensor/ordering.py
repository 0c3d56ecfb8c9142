"""Public ops that sort, rank and accumulate along a dim; values with indices come as named tuples."""

from __future__ import annotations

from collections import namedtuple
from operator import index as as_int

import numpy as np

from sbpjax import naming
from sbpjax.errors import OpError, OpTypeError, message
from sbpjax.ops import cumulative
from sbpjax.ops import sort as _sort

from . import dispatch
from . import dtype as dtypes
from .argument_names import NUMPY, take_names
from .binding import bind, hashable, into_out, must_be_tensor, publish
from .convert import host
from .indexing import with_layout_of
from .inplace import inplace
from .oneflow_arguments import take_oneflow
from .op import op_of
from .tensor import Tensor

cumsum = bind(cumulative.cumsum, ("input",))
cumprod = bind(cumulative.cumprod, ("input",))
logcumsumexp = bind(cumulative.logcumsumexp, ("input",))
msort = bind(_sort.msort, ("input",))

_results = {
    name: namedtuple(name, ["values", "indices"])
    for name in ("sort", "topk", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin")
}


def _pair(name: str, fn, static: tuple, input: Tensor, out=None):
    found = _results[name](*dispatch.run(op_of(fn, static), (input,)))
    return found if out is None else into_out(out, tuple(found))


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, *, out=None):
    """Return the values along a dim in order, and where each came from: int64, under OneFlow's name int32 as there."""
    static = (("dim", as_int(dim)), ("descending", descending), ("stable", stable))
    found = _pair("sort", _sort.sort, static, input, out)
    return found._replace(indices=found.indices.to(dtypes.int32)) if out is None and naming.is_oneflow() else found


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return where the values along a dim in order come from; dtypes as in `sort`."""
    static = (("dim", as_int(dim)), ("descending", descending), ("stable", stable))
    found = dispatch.run(op_of(_sort.argsort, static), (input,))
    return found.to(dtypes.int32) if naming.is_oneflow() else found


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out=None):
    """Return the k largest (or smallest) values along a dim, and where each came from."""
    static = (("k", as_int(k)), ("dim", as_int(dim)), ("largest", largest), ("sorted", sorted))
    return _pair("topk", _sort.topk, static, input, out)


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False):
    """Return the k-th smallest value along a dim, and its index."""
    return _pair("kthvalue", _sort.kthvalue, (("k", as_int(k)), ("dim", as_int(dim)), ("keepdim", keepdim)), input)


def mode(input: Tensor, dim: int = -1, keepdim: bool = False):
    """Return the most frequent value along a dim, and an index of it."""
    return _pair("mode", _sort.mode, (("dim", as_int(dim)), ("keepdim", keepdim)), input)


def _middle(name: str, fn, input: Tensor, dim, keepdim: bool):
    if dim is None:
        return dispatch.run(op_of(fn), (input,))
    return _pair(name, fn, (("dim", as_int(dim)), ("keepdim", keepdim)), input)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False):
    """Return the lower median; along ``dim`` with its index."""
    return _middle("median", _sort.median, input, dim, keepdim)


def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False):
    """Return the lower median of what is no NaN; along ``dim`` with its index."""
    return _middle("nanmedian", _sort.nanmedian, input, dim, keepdim)


def quantile(
    input: Tensor, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return quantiles along a dim, or of all elements; under OneFlow's name of float64, as there."""
    q = tuple(q.tolist()) if isinstance(q, Tensor) and q.ndim else hashable(q)
    static = (("q", q), ("dim", dim), ("keepdim", keepdim), ("interpolation", interpolation))
    found = dispatch.run(op_of(_sort.quantile, static), (input,))
    return found.to(dtypes.float64) if naming.is_oneflow() else found


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend=None, append=None, *, out=None) -> Tensor:
    """Return the differences of neighbours along a dim, n times over; of the tensor between two others, if given."""
    if prepend is not None or append is not None:
        from sbpjax.functions import cat

        input = cat([x for x in (prepend, input, append) if x is not None], dim)
    found = dispatch.run(op_of(cumulative.diff, (("n", as_int(n)), ("dim", as_int(dim)))), (input,))
    return found if out is None else into_out(out, found)


def cummax(input: Tensor, dim: int):
    """Return the largest value so far along a dim, and its index."""
    return _pair("cummax", cumulative.cummax, (("dim", as_int(dim)),), input)


def cummin(input: Tensor, dim: int):
    """Return the smallest value so far along a dim, and its index."""
    return _pair("cummin", cumulative.cummin, (("dim", as_int(dim)),), input)


def isin(elements, test_elements, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return for every element whether it is among the test elements."""
    for x in (elements, test_elements):
        if isinstance(x, Tensor) and (x.is_complex() or x.dtype == dtypes.bool_):
            rule = "isin is defined for real numbers"
            raise OpTypeError(message("isin(...)", f"a {x.dtype.name} tensor", rule, "x.int(), or x.real"))
        if not isinstance(x, (Tensor, int, float, np.generic)):
            must_be_tensor("isin", x)
    like = elements if isinstance(elements, Tensor) else test_elements
    left, right = (host(x) if isinstance(x, Tensor) else np.asarray(x) for x in (elements, test_elements))
    return with_layout_of(np.isin(left, right, invert=invert), like)


def cumsum_(self: Tensor, dim: int, *, dtype=None) -> Tensor:
    """Write `cumsum` into this tensor and return it; ``dtype`` is the tensor's own."""
    _own_dtype("cumsum_", self, dtype)
    return inplace(self, op_of(cumulative.cumsum, _into(self, dim)))


def cumprod_(self: Tensor, dim: int, *, dtype=None) -> Tensor:
    """Write `cumprod` into this tensor and return it; ``dtype`` is the tensor's own."""
    _own_dtype("cumprod_", self, dtype)
    return inplace(self, op_of(cumulative.cumprod, _into(self, dim)))


def _into(x: Tensor, dim: int) -> tuple:
    """Return the options of a running sum that is written into its input: one bool or none stays so, as in PyTorch."""
    return (("dim", as_int(dim)), *((("dtype", x.dtype.np),) if not x.ndim or not x.numel() else ()))


def _own_dtype(name: str, x: Tensor, dtype) -> None:
    if dtype is not None and dtype != x.dtype:
        rule = f"Bad in-place call: input tensor dtype {x.dtype.name} and output tensor dtype {dtype.name} should match"
        raise OpError(message(f"x.{name}(dtype=...)", f"{x.dtype.name}{list(x.shape)}", rule, f"x.{name[:-1]}(...)"))


def _attach() -> None:
    ranked = (argsort, msort, sort, topk, kthvalue, mode, median, nanmedian, quantile)
    for function in (*ranked, cumsum, cumprod, logcumsumexp, diff, cummax, cummin, cumsum_, cumprod_):
        setattr(Tensor, function.__name__, function)


_attach()
publish(globals(), "kthvalue mode median nanmedian quantile cummax cummin isin")
take_names(globals(), "argsort sort topk kthvalue mode median nanmedian quantile cummax cummin diff", **NUMPY)
take_oneflow(globals())
