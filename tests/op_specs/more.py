"""Ops that PyTorch has beside the common ones."""

from __future__ import annotations

import numpy as np

from sbpjax.testing import Input, call
from tests.op_specs.engine import op


def _unary(names: str, kinds: str = "f", low=None, high=None, **options) -> None:
    @op(names, **options)
    def make(g):
        return call(g.tensor(kinds=kinds, low=low, high=high, special=low is None))


_SERIES = {"tol": {"float64": 1e-7, "float32": 5e-5}, "reason": "series of their own"}
_unary("fix", "fi")
_unary("signbit", "fi")
_unary("i0", "f", -3.0, 3.0, double=False, **_SERIES)
_unary("frexp", "f", 0.5, 9.0, grad=False)
_unary("square_relu", "f", reference=lambda torch: lambda x: torch.relu(x) ** 2)
_unary(
    "is_inference is_signed Tensor.dim_order",
    "fi",
    grad=False,
    layouts=False,
    reason="says what a tensor is",
)


def _two(names: str, kinds: str, low=None, high=None, **options) -> None:
    @op(names, **options)
    def make(g):
        x = g.tensor(kinds=kinds, low=low, high=high, max_dim=3)
        return call(x, g.like(x, low=low, high=high))


_two("gcd lcm", "i", 1, 9)
_two("ldexp", "f", -2.0, 2.0)
_two("logaddexp2", "f", -3.0, 3.0)
_two("nextafter", "f", -3.0, 3.0, grad=False)
_two("igamma igammac", "f", 0.5, 4.0, grad=False, double=False, **_SERIES)
_two("is_same_size", "f", grad=False, layouts=False, reason="says what a tensor is")


@op("mvlgamma", double=False, **_SERIES)
def _(g):
    return call(g.tensor(kinds="f", low=2.0, high=4.0), g.pick(1, 2, 3))


@op("polygamma", double=False, method=False, inplace=False, **_SERIES)
def _(g):
    return call(g.pick(0, 1, 2), g.tensor(kinds="f", low=0.5, high=4.0))


@op("dist")
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, g.like(x), g.pick(2, 1, 3.0))


@op("cdist", double=False, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    return call(g.tensor((3, 2), dtype), g.tensor((4, 2), dtype), p=g.pick(2.0, 1.0, 3.0))


@op("renorm", double=False)
def _(g):
    x = g.tensor((3, 4), "f")
    return call(x, g.pick(2, 1), g.dim(x), 1.0)


@op("norm_except_dim", double=False)
def _(g):
    return call(g.tensor((3, 4), "f", views=False), 2, g.pick(0, 1))


@op("frobenius_norm nuclear_norm", double=False, method=False)
def _(g):
    return call(g.tensor((3, 2), "f", low=0.5, high=3.0), (0, 1), *g.pick((), (True,)))


@op("nanquantile")
def _(g):
    return call(g.tensor((3, 4), "f", low=-9.0, high=9.0), g.pick(0.5, 0.3), dim=g.pick(0, 1, -1))


@op("cov corrcoef", double=False, tol={"float32": 5e-5})
def _(g):
    return call(g.tensor((3, 5), "f"))


@op("histogram", grad=False, traced=False, reason="reads the range of the values")
def _(g):
    return call(g.tensor((9,), "f", low=-2.0, high=2.0, views=False), g.pick(4, 3), range=(-2.0, 2.0))


@op("histogramdd", grad=False, traced=False, reason="reads the range of the values")
def _(g):
    return call(g.tensor((9, 2), "f", low=-2.0, high=2.0, views=False), [3, 2], range=[-2.0, 2.0, -2.0, 2.0])


@op("trapezoid trapz cumulative_trapezoid", method=False)
def _(g):
    x = g.tensor(g.pick((4,), (2, 4)), "f")
    return call(x, **g.pick({}, {"dx": 0.5}, {"dim": 0}))


@op("gradient", double=False)
def _(g):
    return call(g.tensor(g.pick((5,), (4, 5)), "f"), **g.pick({}, {"spacing": 2.0}, {"edge_order": 2}))


# ------------------------------------------------------------------------------------------------------- arrangement


@op("block_diag", method=False)
def _(g):
    return call(*[g.tensor(s, "float32") for s in g.pick(((2, 3), (1, 2)), ((3,), (2, 2)), ((), (2,)))])


@op("cartesian_prod", method=False)
def _(g):
    return call(g.tensor((3,), "float32"), g.tensor((2,), "float32"))


@op("combinations", double=False)
def _(g):
    return call(g.tensor((4,), "f"), g.pick(2, 3, 1), **g.maybe(with_replacement=True))


@op("constant_pad_nd")
def _(g):
    return call(g.tensor((2, 3), "fi"), g.pick((1, 2), (1, 0, 0, 2), (-1, 1)), g.pick(0, 2))


@op("diagflat")
def _(g):
    return call(g.tensor(g.pick((3,), (2, 2), ()), "fi"), g.pick(0, 1, -1))


@op("diagonal_scatter")
def _(g):
    dtype = g.dtype("fi")
    return call(g.tensor((3, 3), dtype), g.tensor((3,), dtype))


@op("select_scatter")
def _(g):
    dtype = g.dtype("fi")
    return call(g.tensor((3, 4), dtype), g.tensor((4,), dtype), 0, g.pick(0, 2, -1))


@op("slice_scatter")
def _(g):
    dtype = g.dtype("fi")
    bounds = g.pick({"start": 1, "end": 3}, {"step": 2}, {"start": -2})
    return call(g.tensor((4, 3), dtype), g.tensor((2, 3), dtype), **bounds)


@op("dsplit", aliases=True)
def _(g):
    return call(g.tensor((2, 3, 4), "fi"), g.pick(2, [1, 2]))


@op("Tensor.unsafe_split")
def _(g):
    return call(g.tensor((4, 3), "fi"), g.pick(1, 2, 3), g.pick(0, -2))


@op("split_with_sizes")
def _(g):
    return call(g.tensor((4, 3), "fi"), g.pick([1, 3], [2, 2]), g.pick(0, -2))


@op("Tensor.unsafe_chunk")
def _(g):
    return call(g.tensor((4, 3), "fi"), g.pick(2, 3), g.pick(0, 1))


@op("as_strided", aliases=True)
def _(g):
    return call(g.tensor((3, 4), "fi", views=False), *g.pick(((2, 3), (4, 1)), ((2, 2), (1, 4)), ((3,), (5,), 1)))


_WRONG = "PyTorch's gradient of the first input is that of the elements that were replaced"


@op("as_strided_scatter", grad=False, reason=_WRONG)
def _(g):
    dtype = g.dtype("fi")
    return call(g.tensor((3, 4), dtype, views=False), g.tensor((2, 3), dtype), (2, 3), (4, 1))


@op("tril_indices triu_indices")
def _(g):
    return call(3, 4, g.pick(0, 1, -1))


@op("unravel_index")
def _(g):
    return call(g.index(g.pick((3,), (2, 2)), 12, views=False), (3, 4))


@op("range")
def _(g):
    return call(*g.pick((0, 4), (1.0, 2.0, 0.5), (3, 0, -1)))


@op("scalar_tensor")
def _(g):
    return call(g.pick(2.5, 3, True))


@op("asarray")
def _(g):
    return call(g.pick([1.0, 2.0], [[1, 2], [3, 4]], 2.5))


# ----------------------------------------------------------------------------------------------------------- indices


@op("index_put", method=False)
def _(g):
    x = g.tensor((3, 4), "f", views=False)
    return call(x, (g.index((2,), 3), g.index((2,), 4)), g.tensor((2,), x.dtype), accumulate=True)


@op("index_reduce", double=False)
def _(g):
    x = g.tensor((3, 4), "f", low=0.5, high=2.0)
    source = g.tensor((2, 4), x.dtype, low=0.5, high=2.0)
    return call(
        x,
        0,
        Input(np.array([0, 2]), grad=False),
        source,
        g.pick("prod", "mean", "amax", "amin"),
        **g.maybe(include_self=False),
    )


@op("put", double=False)
def _(g):
    x = g.tensor((3, 4), "f")
    return call(x, Input(np.array([1, 5, 11]), grad=False), g.tensor((3,), x.dtype), **g.maybe(accumulate=True))


@op("batch_gather", reference=lambda torch: lambda x, index: x.gather(1, index[..., None].expand(-1, -1, x.shape[2])))
def _(g):
    return call(g.tensor((2, 4, 3), "f"), g.index((2, 3), 4, views=False))


def _in_top_k(torch):
    return lambda targets, scores, k: (scores > scores.gather(1, targets[:, None].long())).sum(1) < k


@op("in_top_k", reference=_in_top_k, grad=False)
def _(g):
    return call(
        Input(np.array([0, 2, 1], np.int32), grad=False),
        g.tensor((3, 4), "float32", low=-9.0, high=9.0, views=False),
        g.pick(1, 2, 3),
    )


def _updated(torch):
    def slice_update(x, update, bounds):
        x = x.clone()
        x[tuple(slice(*b) for b in bounds)] = update
        return x

    return slice_update


@op("slice_update", reference=_updated, grad=False, traced=False, reason="writes to its input, an input of the program")
def _(g):
    return call(g.tensor((4, 3), "float32", views=False), g.tensor((2, 3), "float32"), [[1, 3, 1], [0, 3, 1]])


@op("Tensor.fill_diagonal_", grad=False)
def _(g):
    return call(g.tensor(g.pick((3, 3), (2, 4)), "fi", grad=False, views=False), 2)


@op("Tensor.sum_to_size")
def _(g):
    return call(g.tensor((2, 3), "fi"), g.pick((1, 3), (3,), (2, 1)))


@op("Tensor.cdouble Tensor.cfloat")
def _(g):
    return call(g.tensor(kinds="fi"))


@op("fill")
def _(g):
    return call(g.tensor(kinds="fib"), g.pick(2, 0))


@op("affine_grid_generator")
def _(g):
    return call(g.tensor((2, 2, 3), "f", views=False), [2, 1, 3, 4], g.flag())


@op("grid_sampler grid_sampler_2d", double=False, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    x, grid = g.tensor((1, 2, 3, 4), dtype), g.tensor((1, 2, 3, 2), dtype, low=-0.9, high=0.9, views=False)
    return call(x, grid, g.pick(0, 1), g.pick(0, 1, 2), g.flag())


@op("grid_sampler_3d", double=False, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    x, grid = g.tensor((1, 2, 2, 3, 4), dtype), g.tensor((1, 2, 2, 2, 3), dtype, low=-0.9, high=0.9, views=False)
    return call(x, grid, g.pick(0, 1), g.pick(0, 1, 2), g.flag())


def _first(result, mean, rstd):
    return result, mean.detach(), rstd.detach()  # PyTorch's backward of it reads the gradient of the first alone


@op("native_layer_norm", double=False, invariant=_first, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    return call(g.tensor((2, 4), dtype), [4], g.tensor((4,), dtype), g.tensor((4,), dtype), 1e-5)


@op("nonzero_static", grad=False)
def _(g):
    return call(g.tensor((2, 3), "ib", views=False), size=g.pick(4, 2, 7))
