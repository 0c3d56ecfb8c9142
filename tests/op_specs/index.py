"""Reading and writing at indices."""

from __future__ import annotations

import numpy as np

from tests.op_specs.engine import op
from tests.support.generate import Input, call


@op("gather")
def _(g):
    x = g.tensor(g.pick((3, 4), (3,), (2, 3, 2)), "fi")
    dim = g.dim(x)
    size = x.shape[dim] if -x.ndim <= dim < x.ndim else 1
    return call(x, dim, g.index(x.shape, size))


@op("take_along_dim")
def _(g):
    x = g.tensor((3, 4), "fi")
    dim = g.dim(x)
    return call(x, g.index((3, 4), (x.shape[dim] if -2 <= dim < 2 else 1)), dim=dim)


@op("take")
def _(g):
    return call(g.tensor((3, 4), "fi"), g.index(g.pick((2,), (2, 3), ()), 12))


@op("index_select")
def _(g):
    x = g.tensor((3, 4), "fib")
    return call(x, g.dim(x), g.index((2,), 3))


@op("masked_select", traced=False, reason="the shape of the result depends on values")
def _(g):
    x = g.tensor(kinds="fi", max_dim=4)
    return call(x, g.tensor(x.shape, "bool"))


@op("nonzero argwhere", traced=False, reason="the shape of the result depends on values")
def _(g):
    return call(g.tensor(kinds="ib", max_dim=3))


@op("masked_fill")
def _(g):
    x = g.tensor(kinds="fib", max_dim=4)
    return call(x, g.tensor(x.shape, "bool"), g.pick(0, 1, 2.5) if x.dtype[0] == "f" else g.pick(0, 1))


@op("masked_scatter", double=False)
def _(g):
    x = g.tensor((2, 3), "fi")
    return call(x, g.tensor(g.pick((2, 3), (3,)), "bool"), g.tensor((8,), x.dtype))


def _rows(g, kinds: str = "fi"):
    x = g.tensor((3, 4), kinds)
    dim = g.dim(x)
    shape = [3, 4]
    if -2 <= dim < 2:
        shape[dim] = 2
    return x, dim, shape


@op("index_add")
def _(g):
    x, dim, shape = _rows(g)
    return call(x, dim, g.index((2,), 3), g.tensor(shape, x.dtype), **({"alpha": 2} if g.flag() else {}))


@op("index_copy")
def _(g):
    import numpy as np

    x, dim, shape = _rows(g)
    return call(x, dim, Input(np.array(g.pick([0, 2], [2, 1])), grad=False), g.tensor(shape, x.dtype))


@op("index_fill")
def _(g):
    x, dim, _ = _rows(g)
    return call(x, dim, g.index((2,), 3), g.pick(0, 2))


def _permutation(g, dim_size: int, shape):
    """Return indices without repetitions along dim 0, so that no two writes meet."""
    import numpy as np

    rows = np.argsort(g.array((dim_size, *shape[1:]), "float32"), axis=0)[: shape[0]]
    return Input(rows.astype(np.int64), grad=False)


@op("scatter")
def _(g):
    x = g.tensor((3, 4), "fi")
    index = _permutation(g, 3, (2, 4))
    value = g.pick(g.tensor((2, 4), x.dtype), 2)
    return call(x, g.pick(0, -2), index, value)


@op("scatter_add")
def _(g):
    x = g.tensor((3, 4), "fi")
    dim = g.dim(x)
    return call(x, dim, g.index((2, 3), 3), g.tensor((2, 3), x.dtype))


@op("scatter_reduce", double=False)
def _(g):
    x = g.tensor((3, 4), "f")
    reduce = g.pick("sum", "amax", "amin", "mean", "prod")
    return call(
        x,
        g.pick(0, 1),
        g.index((2, 3), 3),
        g.tensor((2, 3), x.dtype),
        reduce,
        **({"include_self": False} if g.flag() else {}),
    )


def _gather_nd(torch):
    return lambda x, index: x[tuple(index.unbind(-1))]


@op("gather_nd", reference=_gather_nd)
def _(g):
    return call(g.tensor((3, 4), "f"), g.index(g.pick((2, 2), (2, 1), (2, 3, 2)), 3))


def _scatter_nd(torch):
    return lambda index, update, shape: torch.zeros(shape, dtype=update.dtype).index_put(
        tuple(index.unbind(-1)), update, accumulate=True
    )


@op("scatter_nd", reference=_scatter_nd)
def _(g):
    return call(g.index((5, 1), 4), g.tensor((5, 3), "f"), (4, 3))


def _tensor_scatter(torch):
    return lambda x, index, update: x.index_put(tuple(index.unbind(-1)), update)


@op("tensor_scatter_nd_update", reference=_tensor_scatter)
def _(g):
    import numpy as np

    index = Input(np.array(g.pick([[0], [2]], [[3], [1]])), grad=False)
    dtype = g.dtype()
    return call(g.tensor((4, 3), dtype), index, g.tensor((2, 3), dtype))


@op("Tensor.index_put")
def _(g):
    x = g.tensor((3, 4), "f")
    index = (g.index((2,), 3), g.index((2,), 4))
    return call(x, index, g.tensor(g.pick((2,), ()), x.dtype), accumulate=True)


@op("Tensor.__getitem__", aliases=True)
def _(g):
    x = g.tensor((4, 3, 2), "fi")
    everything = slice(None)
    key = g.pick(
        1, -1, slice(1, 3), slice(None, None, 2), (0, 1), (everything, 2), (Ellipsis, 1), (None, 0),
        (slice(1, None), everything, 0), (g.index((3,), 4),), (everything, g.index((2,), 3)),
        (g.index((2,), 4), slice(0, 2)), (g.index((2, 1), 4), g.index((3,), 3)),
        (0, everything, g.index((2,), 2)), [0, 2], (everything, [0, 2]), (slice(3, 1),), (True,),
    )  # fmt: skip
    return call(x, key)


@op("Tensor.__setitem__", grad=False, reason="writes to its input and returns nothing", layouts=False)
def _(g):
    x = g.tensor((4, 3, 2), "fi", grad=False, views=False)
    everything = slice(None)
    key = g.pick(1, slice(1, 3), (everything, 2), (Ellipsis, 1), (g.index((3,), 4),), (0, 1))
    return call(x, key, g.pick(2, 0.5, 1))


@op("nn.functional.embedding", method=False)
def _(g):
    weight = g.tensor((4, 3), "f")
    return call(
        g.index(g.pick((2,), (2, 3), (), (0,)), 4), weight, **({"padding_idx": g.pick(0, -1)} if g.flag() else {})
    )


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


@op("nonzero_static", grad=False)
def _(g):
    return call(g.tensor((2, 3), "ib", views=False), size=g.pick(4, 2, 7))
