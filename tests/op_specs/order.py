"""Sorting, selection by rank, cumulative ops, searching."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import Dtype, Input, call


@op("sort")
def _(g):
    x = g.tensor(kinds="fhi", special=True, max_dim=4)
    return call(x, dim=g.dim(x), stable=True, **g.maybe(descending=True))


@op("argsort")
def _(g):
    x = g.tensor(kinds="fi", special=True, max_dim=3)
    return call(x, dim=g.dim(x), stable=True, **g.maybe(descending=True))


@op("msort", method=True)
def _(g):
    return call(g.tensor(kinds="fi", special=True, min_dim=1, max_dim=3))


def _distinct(g, **limits):
    """Return a tensor without ties: which of equal elements comes is not said."""
    return g.tensor(kinds="f", low=-9.0, high=9.0, **limits)


@op("topk")
def _(g):
    x = _distinct(g, min_dim=1, max_dim=3, empty=False)
    dim = g.dim(x)
    k = g.pick(1, 0, 2) if -x.ndim <= dim < x.ndim and x.shape[dim] > 1 else g.pick(1, 0)
    return call(x, k, dim=dim, **({"largest": False} if g.flag() else {}))


@op("kthvalue")
def _(g):
    x = _distinct(g, min_dim=1, max_dim=3, empty=False)
    return call(x, 1, dim=g.dim(x), **({"keepdim": True} if g.flag() else {}))


@op("median nanmedian")
def _(g):
    x = g.pick(_distinct, lambda g, **k: g.tensor(kinds="i", low=-50, high=50, **k))(g, max_dim=3, empty=False)
    if "expand" in x.suffix:  # along a dim of stride 0 PyTorch's median is whatever its memory held before
        x = Input(x.value, grad=x.grad)
    return call(x, dim=g.dim(x), **({"keepdim": True} if g.flag() else {})) if g.flag() else call(x)


@op("mode", double=False)
def _(g):
    x = g.tensor((2, 5), "int64", low=0, high=3)
    return call(x, dim=g.dim(x), **({"keepdim": True} if g.flag() else {}))


@op("quantile")
def _(g):
    x = _distinct(g, min_dim=1, max_dim=3, empty=False)
    q = g.pick(0.5, 0.3, 1.0, g.tensor((2,), x.dtype, low=0.1, high=0.9, grad=False, views=False))
    kwargs = {"dim": g.dim(x), "keepdim": g.flag()} if g.flag() else {}
    return call(
        x,
        q,
        **kwargs,
        **({"interpolation": g.pick("linear", "lower", "higher", "midpoint", "nearest")} if g.flag() else {}),
    )


@op("cumsum cumprod")
def _(g):
    x = g.tensor(kinds="fib", max_dim=4)
    return call(x, dim=g.dim(x), **({"dtype": Dtype("float64")} if g.flag() else {}))


@op("logcumsumexp")
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, dim=g.dim(x))


@op("cummax cummin", double=False)
def _(g):
    x = g.tensor(kinds="fi", special=True, max_dim=3)
    return call(x, dim=g.dim(x))


@op("diff")
def _(g):
    x = g.tensor(kinds="fi", min_dim=1, max_dim=3, empty=False)
    return call(x, **({"n": g.pick(1, 2)} if g.flag() else {}), **({"dim": g.dim(x)} if g.flag() else {}))


@op("searchsorted")
def _(g):
    import numpy as np

    sequence = Input(np.sort(g.array((4,), "float32", style=g.pick("normal", "ties"))), grad=False)
    kwargs = g.pick({}, {"right": True}, {"side": "right"}, {"out_int32": True})
    return call(sequence, g.pick(g.tensor(kinds="float32", max_dim=3, grad=False), 0.5), **kwargs)


@op("bucketize")
def _(g):
    import numpy as np

    boundaries = Input(np.sort(g.array((4,), "float32")), grad=False)
    return call(g.tensor(kinds="float32", max_dim=3, grad=False), boundaries, **g.maybe(right=True))


@op("isin", traced=False, reason="reads the elements that it looks for")
def _(g):
    x = g.tensor(kinds="i", low=0, high=6)
    return call(x, g.tensor((3,), x.dtype, low=0, high=6), **g.maybe(invert=True))


_COUNTED = "the shape of the result depends on values"


@op("unique", traced=False, reason=_COUNTED, method=True)
def _(g):
    x = g.tensor(kinds="if", max_dim=3)
    kwargs = g.maybe(return_inverse=True, return_counts=True)
    if x.ndim and g.flag() and 0 not in x.shape:
        kwargs["dim"] = g.dim(x)
    return call(x, **kwargs)


@op("unique_consecutive", traced=False, reason=_COUNTED)
def _(g):
    x = g.tensor(kinds="if", max_dim=3, special=True, empty=False)
    kwargs = g.maybe(return_inverse=True, return_counts=True)
    if x.ndim and g.flag():
        kwargs["dim"] = g.dim(x)
    return call(x, **kwargs)


@op("histc", traced=False, reason="reads the range of the values")
def _(g):
    return call(
        g.tensor(kinds="f", low=-3.0, high=3.0, empty=False, grad=False), **g.pick({}, {"bins": 5, "min": -2, "max": 2})
    )


@op("bincount", traced=False, reason=_COUNTED)
def _(g):
    x = g.index(g.pick((4,), (0,), (7,)), 5)
    weights = {"weights": g.tensor(x.shape, "float32", grad=False)} if g.flag() else {}
    return call(x, **weights, **g.maybe(minlength=8))
