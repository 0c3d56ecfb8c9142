"""Tensors put together, taken apart, and written into copies."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import call

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
