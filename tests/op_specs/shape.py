"""Views, joins and other arrangements."""

from __future__ import annotations

from tests.op_specs.engine import op, same
from tests.support.generate import call


def _any(g, **limits):
    return g.tensor(kinds="fibc", **limits)


@op("reshape", aliases=True)
def _(g):
    x = g.tensor((2, 6), "fib")
    return call(x, g.pick((12,), (-1,), (3, 4), (2, 3, -1), (1, 12, 1), (12, 1)))


same("view", of="reshape", reference=lambda torch: torch.Tensor.view)


@op("Tensor.view", aliases=True)
def _(g):
    x = g.tensor((2, 6), "fib")
    return call(x, *g.pick((12,), (-1,), (3, 4), (2, 3, -1), (1, 12, 1), (2, 1, 6)))


@op("flatten", aliases=True)
def _(g):
    x = _any(g, max_dim=4)
    if x.ndim > 1 and g.flag():
        return call(x, g.pick(0, 1), g.pick(-1, x.ndim - 1))
    return call(x)


@op("ravel", aliases=True)
def _(g):
    return call(_any(g))


@op("unflatten", aliases=True)
def _(g):
    return call(g.tensor((3, 6), "fi"), g.pick(1, -1), g.pick((2, 3), (-1, 2), (6, 1)))


@op("squeeze", aliases=True)
def _(g):
    x = _any(g)
    return call(x) if g.flag() else call(x, g.dim(x))


@op("unsqueeze", aliases=True)
def _(g):
    x = _any(g)
    return call(x, g.dim(x, extra=1))


@op("transpose swapaxes swapdims", aliases=True)
def _(g):
    x = _any(g)
    return call(x, g.dim(x), g.dim(x))


@op("t", aliases=True)
def _(g):
    return call(_any(g, max_dim=2))


@op("permute", aliases=True)
def _(g):
    x = g.tensor((2, 3, 4), "fib")
    return call(x, g.pick((0, 1, 2), (2, 0, 1), (-1, 0, 1), (1, 0, 2)))


@op("movedim moveaxis", aliases=True)
def _(g):
    x = g.tensor((2, 3, 4), "fi")
    return call(x, *g.pick((0, 2), (-1, 0), ((0, 1), (1, 2)), ((0, 2), (2, 0))))


@op("broadcast_to", aliases=True)
def _(g):
    return call(g.tensor(g.pick((3,), (1,), (2, 1), ()), "fi"), g.pick((2, 3), (4, 2, 3)))


same("expand", of="broadcast_to", reference=lambda torch: torch.Tensor.expand)


@op("Tensor.expand", aliases=True)
def _(g):
    return call(g.tensor(g.pick((3,), (1,), (2, 1), ()), "fi"), *g.pick((2, 3), (4, 2, 3), (2, -1)))


@op("Tensor.expand_as Tensor.view_as Tensor.reshape_as", aliases=True)
def _(g):
    return call(g.tensor((2, 3), "fi"), g.tensor((2, 3), "fi"))


@op("broadcast_like", reference=lambda torch: lambda x, like: x.expand_as(like))
def _(g):
    return call(g.tensor(g.pick((3,), (1,), (2, 1)), "f"), g.tensor((2, 3), "f", grad=False))


@op("broadcast_tensors", aliases=True)
def _(g):
    x = _any(g, max_dim=3)
    return call(x, g.like(x))


@op("atleast_1d atleast_2d atleast_3d", aliases=True)
def _(g):
    return call(_any(g, max_dim=4))


@op("narrow", aliases=True)
def _(g):
    x = g.tensor((4, 3), "fi")
    return call(x, g.dim(x), *g.pick((0, 2), (1, 1), (-2, 2), (1, 0)))


@op("select", aliases=True)
def _(g):
    x = g.tensor((2, 3, 2), "fi")
    return call(x, g.dim(x), g.pick(0, 1, -1))


@op("split", aliases=True)
def _(g):
    x = g.tensor((4, 3), "fi")
    if g.flag():
        return call(x, g.pick([1, 3], [2, 2], [4, 0]), dim=0)
    return call(x, g.pick(2, 1, 3, 5), **({"dim": g.dim(x)} if g.flag() else {}))


@op("chunk tensor_split", aliases=True)
def _(g):
    x = g.tensor((4, 3), "fi")
    return call(x, g.pick(2, 1, 3, 5), **({"dim": g.dim(x)} if g.flag() else {}))


@op("hsplit vsplit", aliases=True)
def _(g):
    return call(g.tensor((4, 4), "fi"), g.pick(2, 1, [1, 2]))


@op("unbind", aliases=True)
def _(g):
    x = g.tensor((2, 3, 2), "fi")
    return call(x, g.dim(x))


@op("diagonal", aliases=True)
def _(g):
    x = g.tensor(g.pick((3, 3), (2, 4), (2, 3, 4)), "fi")
    return call(x, g.pick(0, 1, -1, 5), **({"dim1": -1, "dim2": 0} if g.flag() else {}))


@op("Tensor.unfold", aliases=True)
def _(g):
    x = g.tensor((4, 5), "fi")
    return call(x, g.dim(x), g.pick(2, 3, 1), g.pick(1, 2))


@op("diag")
def _(g):
    return call(g.tensor(g.pick((3,), (3, 3), (2, 4), (0,)), "fi"), g.pick(0, 1, -1))


@op("diag_embed")
def _(g):
    return call(g.tensor(g.pick((3,), (2, 3)), "fi"), **g.maybe(offset=1))


@op("tril triu")
def _(g):
    return call(g.tensor(g.pick((3, 3), (2, 4), (2, 3, 2), (0, 3)), "fib"), g.pick(0, 1, -1, 5))


@op("trace")
def _(g):
    return call(g.tensor(g.pick((3, 3), (2, 4)), "fi"))


# --------------------------------------------------------------------------------------------------------- joining


@op("cat concat concatenate")
def _(g):
    x = g.tensor(kinds="fib", min_dim=1, max_dim=4)
    y = g.tensor(x.shape, g.pick(x.dtype, "float64"))
    return call(g.pick([x, y], [x], [x, y, x]), dim=g.dim(x))


@op("stack")
def _(g):
    x = g.tensor(kinds="fib", max_dim=4)
    return call([x, g.tensor(x.shape, x.dtype)], dim=g.dim(x, extra=1))


@op("hstack vstack dstack column_stack row_stack")
def _(g):
    x = g.tensor(g.pick((3,), (2, 3), (), (2, 3, 2)), "fi")
    return call([x, g.tensor(x.shape, x.dtype)])


@op("Tensor.repeat tile")
def _(g):
    x = g.tensor(kinds="fi", max_dim=2)
    return call(x, g.pick((2, 1), (1, 3), (2, 1, 2), (0, 2)))


same("repeat", of="tile", reference=lambda torch: torch.Tensor.repeat)


@op("repeat_interleave")
def _(g):
    x = g.tensor((2, 3), "fi")
    return call(x, g.pick(2, 1, 0, 3), **({"dim": g.dim(x)} if g.flag() else {}))


@op("flip")
def _(g):
    x = g.tensor(kinds="fib", min_dim=1)
    return call(x, (g.dim(x),))


@op("fliplr flipud")
def _(g):
    return call(g.tensor(kinds="fi", min_dim=2))


@op("roll")
def _(g):
    x = g.tensor(kinds="fi", min_dim=1, max_dim=4)
    return call(x, g.pick(1, -2, 7), **({"dims": g.dim(x)} if g.flag() else {}))


@op("rot90")
def _(g):
    return call(g.tensor((2, 3, 2), "fi"), g.pick(1, 2, -1, 0, 5), g.pick((0, 1), (1, 2), (-1, 0)))


@op("meshgrid")
def _(g):
    dtype = g.dtype()
    return call(g.tensor((3,), dtype), g.tensor((2,), dtype), indexing=g.pick("ij", "xy"))


@op("broadcast_shapes")
def _(g):
    return call(g.pick((2, 1), (3,), ()), g.pick((1, 3), (2, 3), ()))


@op("slice", reference=lambda torch: lambda x, bounds: x[tuple(slice(*b) for b in bounds)])
def _(g):
    return call(
        g.tensor((4, 3), "fi"),
        [g.pick((None, None, None), (1, 3, 1), (0, 4, 2)), g.pick((None, None, None), (0, 2, 1))],
    )


@op("nn.functional.pad", method=False)
def _(g):
    x = g.tensor(g.pick((2, 3), (2, 3, 4), (1, 2, 3, 4)), "fi")
    mode = g.pick("constant", "constant", "reflect", "replicate", "circular")
    if mode == "constant":
        return call(x, g.pick((1, 2), (1, 0, 0, 2), (-1, 1)), **({"value": 2} if g.flag() else {}))
    x = g.tensor(g.pick((2, 3, 4), (1, 2, 3, 4)), "f")
    return call(x, g.pick((1, 2), (0, 1)) if x.ndim == 3 else g.pick((1, 2, 0, 1), (1, 1, 1, 1)), mode=mode)


@op("nn.functional.pixel_shuffle", method=False)
def _(g):
    return call(g.tensor((1, 4, 2, 3), "f"), g.pick(2, 1))


@op("nn.functional.pixel_unshuffle", method=False)
def _(g):
    return call(g.tensor((1, 2, 2, 4), "f"), g.pick(2, 1))


@op("nn.functional.one_hot", method=False)
def _(g):
    return call(g.index(g.pick((3,), (2, 3), ()), 4), g.pick(4, 6))


@op("nn.functional.depend", reference=lambda torch: lambda x, after: x.clone())
def _(g):
    return call(g.tensor((2, 3), "f"), g.tensor((2,), "f", grad=False))
