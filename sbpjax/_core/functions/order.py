"""Medians, `diff`, `isin`, and in-place cumulative sums and products."""

from __future__ import annotations

from collections import namedtuple
from operator import index as as_int

import numpy as np

from sbpjax._core import functions
from sbpjax._core.ops.reductions import cumulative, sort
from sbpjax._core.tensor.calls.binding import must_be_tensor
from sbpjax._core.tensor.creation.convert import fetch_to_host
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.indexing import with_layout_of
from sbpjax._core.tensor.storage.inplace import inplace
from sbpjax.errors import OpError, OpTypeError

_results = {name: namedtuple(name, ["values", "indices"]) for name in ("median", "nanmedian")}


def _middle(name: str, fn, input: Tensor, dim, keepdim: bool):
    if dim is None:
        return dispatch.apply(fn, input)
    return _results[name](*dispatch.apply(fn, input, dim=as_int(dim), keepdim=keepdim))


def median(input: Tensor, dim: int | None = None, keepdim: bool = False):
    """Return the lower median; along ``dim`` with its index."""
    return _middle("median", sort.median, input, dim, keepdim)


def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False):
    """Return the lower median, ignoring NaN; along ``dim`` with its index."""
    return _middle("nanmedian", sort.nanmedian, input, dim, keepdim)


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend=None, append=None) -> Tensor:
    """Return the differences of neighbours along a dim, n times over; of the tensor between two others, if given.

    No difference (``n=0``) is the tensor itself, without the others.
    """
    if n == 0:
        return input.clone()
    if prepend is not None or append is not None:
        input = functions.cat([x for x in (prepend, input, append) if x is not None], dim)
    return dispatch.apply(cumulative.diff, input, n=as_int(n), dim=as_int(dim))


def isin(elements, test_elements, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return for every element whether it is among the test elements."""
    for x in (elements, test_elements):
        if isinstance(x, Tensor) and (x.is_complex() or x.dtype == dtypes.bool_):
            rule = "isin is defined for real numbers"
            raise OpTypeError("isin(...)", f"a {x.dtype.name} tensor", rule, "x.int(), or x.real")
        if not isinstance(x, (Tensor, int, float, np.generic)):
            must_be_tensor("isin", x)
    like = elements if isinstance(elements, Tensor) else test_elements
    left, right = (fetch_to_host(x) if isinstance(x, Tensor) else np.asarray(x) for x in (elements, test_elements))
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
        raise OpError(f"x.{name}(dtype=...)", f"{x.dtype.name}{list(x.shape)}", rule, f"x.{name[:-1]}(...)")
