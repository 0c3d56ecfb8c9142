"""Public reductions: ``sum mean max …``, with PyTorch's overloads of ``dim``; named tuples for values and indices."""

from __future__ import annotations

from collections import namedtuple
from operator import index as as_int

from sbpjax.errors import OpTypeError, message
from sbpjax.ops import reduce

from . import dispatch
from . import dtype as dtypes
from .argument_names import NUMPY, take_names
from .binding import bind, hashable, into_out, publish
from .oneflow_arguments import take_oneflow
from .op import op_of
from .tensor import Tensor

_bound = {
    n: bind(getattr(reduce, n), ("input",)) for n in ("nansum", "nanmean", "amax", "amin", "logsumexp", "count_nonzero")
}
nansum, nanmean, amax, amin = (_bound[n] for n in ("nansum", "nanmean", "amax", "amin"))
logsumexp, count_nonzero = _bound["logsumexp"], _bound["count_nonzero"]

_SUM, _MEAN = op_of(reduce.sum), op_of(reduce.mean)


def _finish(result, out):
    return result if out is None else into_out(out, result)


def _dims(dim, more: tuple):
    """Return ``dim`` given as one, several, or several arguments."""
    return hashable((dim, *more)) if more else hashable(dim)


def _reduce(fn, input, dim, keepdim, dtype=None):
    static = [("dim", hashable(dim)), ("keepdim", keepdim)]
    if dtype is not None:
        static.append(("dtype", dtypes.of(dtype).np))
    return dispatch.unary(op_of(fn, tuple(static)), input)


def sum(input: Tensor, dim=None, keepdim: bool = False, *, dtype=None, out=None) -> Tensor:
    """Return the sum over some dims (all by default); bools and integers sum in int64."""
    if dim is None and not keepdim and dtype is None and out is None:
        return dispatch.unary(_SUM, input)
    return _finish(_reduce(reduce.sum, input, dim, keepdim, dtype), out)


def mean(input: Tensor, dim=None, keepdim: bool = False, *, dtype=None, out=None) -> Tensor:
    """Return the mean over some dims (all by default)."""
    if dim is None and not keepdim and dtype is None and out is None:
        return dispatch.unary(_MEAN, input)
    return _finish(_reduce(reduce.mean, input, dim, keepdim, dtype), out)


def prod(input: Tensor, dim=None, keepdim: bool = False, *, dtype=None, out=None) -> Tensor:
    """Return the product over one dim, or all."""
    return _finish(_reduce(reduce.prod, input, dim, keepdim, dtype), out)


def all(input: Tensor, dim=None, keepdim: bool = False, *, out=None) -> Tensor:
    """Return whether all elements hold."""
    return _finish(_reduce(reduce.all, input, dim, keepdim), out)


def any(input: Tensor, dim=None, keepdim: bool = False, *, out=None) -> Tensor:
    """Return whether any element holds."""
    return _finish(_reduce(reduce.any, input, dim, keepdim), out)


def _index(fn, input, dim, keepdim, dtype) -> Tensor:
    found = _reduce(fn, input, dim, keepdim)
    return found if dtype is None else found.to(dtype)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, dtype=None) -> Tensor:
    """Return the index of the first largest element, along a dim or of the flattened tensor; int64 unless asked."""
    return _index(reduce.argmax, input, dim, keepdim, dtype)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False, dtype=None) -> Tensor:
    """Return the index of the first smallest element, along a dim or of the flattened tensor; int64 unless asked."""
    return _index(reduce.argmin, input, dim, keepdim, dtype)


max_result = namedtuple("max", ["values", "indices"])
min_result = namedtuple("min", ["values", "indices"])
aminmax_result = namedtuple("aminmax", ["min", "max"])


def _extreme(fn, other_fn, result, input, dim, keepdim, other, out):
    if isinstance(dim, Tensor):
        other, dim = dim, None
    if other is not None:
        from sbpjax.ops import arithmetic

        return _finish(dispatch.run(op_of(getattr(arithmetic, other_fn)), (input, other)), out)
    if dim is None:
        if keepdim:
            rule = "keepdim comes with dim"
            raise OpTypeError(message(f"{fn.__name__}(keepdim=True)", "no dim", rule, f"am{fn.__name__}(keepdim=True)"))
        return _finish(dispatch.unary(op_of(fn), input), out)
    values = result(*dispatch.run(op_of(fn, (("dim", as_int(dim)), ("keepdim", keepdim))), (input,)))
    return values if out is None else into_out(out, tuple(values))


def max(input: Tensor, dim=None, keepdim: bool = False, *, other=None, out=None):
    """Return the largest element; along ``dim`` with the indices; with another tensor the elementwise maximum."""
    return _extreme(reduce.max, "maximum", max_result, input, dim, keepdim, other, out)


def min(input: Tensor, dim=None, keepdim: bool = False, *, other=None, out=None):
    """Return the smallest element; along ``dim`` with the indices; with another tensor the elementwise minimum."""
    return _extreme(reduce.min, "minimum", min_result, input, dim, keepdim, other, out)


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False):
    """Return the smallest and the largest element."""
    return aminmax_result(*dispatch.run(op_of(reduce.aminmax, (("dim", dim), ("keepdim", keepdim))), (input,)))


def _spread(fn, input, dim, unbiased, correction, keepdim):
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = int(unbiased)
    static = (("dim", hashable(dim)), ("correction", hashable(correction)), ("keepdim", keepdim))
    return dispatch.run(op_of(fn, static), (input,))


def var(input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=1) -> Tensor:
    """Return the variance, over ``n - correction``."""
    return _spread(reduce.var, input, dim, unbiased, correction, keepdim)


def std(input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=1) -> Tensor:
    """Return the standard deviation, over ``n - correction``."""
    return _spread(reduce.std, input, dim, unbiased, correction, keepdim)


def var_mean(input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=1) -> tuple:
    """Return variance and mean."""
    return _spread(reduce.var_mean, input, dim, unbiased, correction, keepdim)


def std_mean(input: Tensor, dim=None, unbiased: bool | None = None, keepdim: bool = False, *, correction=1) -> tuple:
    """Return standard deviation and mean."""
    return _spread(reduce.std_mean, input, dim, unbiased, correction, keepdim)


def norm(input: Tensor, p: float | str | None = "fro", dim=None, keepdim: bool = False, dtype=None, out=None) -> Tensor:
    """Return the p-norm over some dims; ``"fro"`` is the 2-norm, ``"nuc"`` the sum of a matrix's singular values."""
    if out is not None:
        return into_out(out, norm(input, p, dim, keepdim, dtype))
    if p == "nuc":
        from sbpjax.ops.matrix_norm import matrix_norm  # which few scripts need

        dims = (0, 1) if dim is None else hashable(dim)
        static = (("ord", "nuc"), ("dim", dims), ("keepdim", bool(keepdim)), ("dtype", dtypes.np_of(dtype)))
        return dispatch.run(op_of(matrix_norm, static), (input,))
    p = 2.0 if p is None or p == "fro" else p
    static = [("p", float(p) if not isinstance(p, str) else p), ("dim", hashable(dim)), ("keepdim", keepdim)]
    if dtype is not None:
        static.append(("dtype", dtypes.of(dtype).np))
    return dispatch.run(op_of(reduce.norm, tuple(static)), (input,))


def _method(function):
    def method(self, *dims, **options):
        if len(dims) > 1 and isinstance(dims[1], int) and not isinstance(dims[1], bool):
            return function(self, dims, **options)
        return function(self, *dims, **options)

    method.__doc__ = function.__doc__
    method.__name__ = function.__name__
    return method


def _attach() -> None:
    for function in (sum, mean, nansum, nanmean, amax, amin, logsumexp, count_nonzero):
        setattr(Tensor, function.__name__, _method(function))
    for function in (prod, all, any, argmax, argmin, max, min, aminmax, var, std, norm):
        setattr(Tensor, function.__name__, function)


_attach()
publish(globals(), "argmax argmin aminmax var std norm count_nonzero")
take_names(
    globals(),
    """all any aminmax argmax argmin max min mean prod std std_mean sum var var_mean""",
    **NUMPY,
)
take_oneflow(globals())
