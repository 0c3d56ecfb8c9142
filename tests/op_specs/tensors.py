"""Making tensors, and methods without a function of the same name."""

from __future__ import annotations

from tests.op_specs.engine import Different, op
from tests.support.generate import Dtype, call


def _dtype(g, *names) -> dict:
    return {"dtype": Dtype(g.pick(*names))} if g.flag() else {}


@op("zeros ones")
def _(g):
    return call(*g.pick((2, 3), ((2, 3),), (0,), ((),)), **_dtype(g, "int64", "bool", "bfloat16"))


@op("full")
def _(g):
    return call(g.pick((2, 3), (), (0,)), g.pick(2.5, 2, True), **_dtype(g, "float64", "int32"))


@op("eye")
def _(g):
    return call(*g.pick((3,), (2, 4), (0,)), **_dtype(g, "int64", "bool"))


@op("arange")
def _(g):
    return call(
        *g.pick((5,), (1, 5), (1, 9, 2), (0.0, 1.0, 0.3), (5, 0, -2), (2.5,), (0,)), **_dtype(g, "float64", "int32")
    )


@op("linspace")
def _(g):
    return call(*g.pick((0, 1, 5), (-2.5, 3, 4), (1, 0, 3), (2, 3, 1), (0, 1, 0)), **_dtype(g, "float64"))


@op("logspace")
def _(g):
    return call(*g.pick((0, 1, 5), (-1, 2, 4)), **_dtype(g, "float64"))


@op("zeros_like ones_like")
def _(g):
    return call(g.tensor(kinds="fib", grad=False), **_dtype(g, "int64", "float64"))


@op("full_like")
def _(g):
    return call(g.tensor(kinds="fi", grad=False), g.pick(2, 3), **_dtype(g, "int64", "float64"))


@op("tensor as_tensor")
def _(g):
    data = g.pick([1.0, 2.0], [[1, 2], [3, 4]], 3, 2.5, True, [True, False], [], [[]], [1, 2.5], [1 + 2j])
    return call(data, **_dtype(g, "float64", "complex64"))


@op("Tensor.new_zeros Tensor.new_ones")
def _(g):
    return call(g.tensor(kinds="fi", grad=False), *g.pick((2, 3), ((2, 3),)), **_dtype(g, "int64"))


@op("Tensor.new_full")
def _(g):
    return call(g.tensor(kinds="fi", grad=False), (2, 3), 2)


@op("Tensor.new_tensor", layouts=False, reason="data for a global tensor needs placement and sbp")
def _(g):
    return call(g.tensor(kinds="fi", grad=False), g.pick([1, 2], [[1.5]], 3))


@op(
    "Tensor.bfloat16 Tensor.bool Tensor.byte Tensor.char Tensor.double Tensor.float Tensor.half Tensor.int Tensor.long "
    "Tensor.short"
)
def _(g):
    return call(g.tensor(kinds="fib", low=0, high=9))


@op("Tensor.to")
def _(g):
    return call(g.tensor(kinds="fib"), Dtype(g.pick("float64", "int64", "bool", "float16")))


@op("Tensor.type_as")
def _(g):
    return call(g.tensor(kinds="fib"), g.tensor((2,), "fi", grad=False))


@op("Tensor.contiguous Tensor.detach Tensor.cpu", aliases=True)
def _(g):
    return call(g.tensor(kinds="fib"))


@op("Tensor.dim Tensor.ndimension Tensor.nelement Tensor.element_size Tensor.is_signed")
def _(g):
    return call(g.tensor(kinds="fib", grad=False))


@op("Tensor.is_contiguous Tensor.stride Tensor.storage_offset", layouts=False, reason="a global tensor has its own")
def _(g):
    return call(g.tensor(kinds="fib", grad=False))


@op("Tensor.size")
def _(g):
    x = g.tensor(kinds="f", grad=False, min_dim=1)
    return call(x) if g.flag() else call(x, g.dim(x))


@op("Tensor.item", traced=False, reason="gives a Python value")
def _(g):
    return call(g.tensor(g.pick((), (1,), (1, 1)), "fib", grad=False))


@op("Tensor.tolist", traced=False, reason="gives Python values")
def _(g):
    return call(g.tensor(kinds="fib", grad=False))


@op("Tensor.fill_")
def _(g):
    return call(g.tensor(kinds="fib", grad=False), g.pick(2, 0))


@op("Tensor.zero_")
def _(g):
    return call(g.tensor(kinds="fib", grad=False))


@op("Tensor.copy_")
def _(g):
    x = g.tensor(kinds="fib", grad=False, views=False)
    return call(x, g.like(x, "fi") if g.flag() else g.tensor(x.shape, x.dtype))


@op("Tensor.where")
def _(g):
    x = g.tensor(kinds="fi", max_dim=3)
    return call(x, g.tensor(x.shape, "bool"), g.pick(g.like(x), 2))


def _shape_of(plain, made):
    if plain.array.shape != (2, 3):
        raise Different(f"shape {plain.array.shape}; wanted (2, 3)")


@op("empty", check=_shape_of, grad=False)
def _(g):
    return call(2, 3)


@op("empty_like", check=_shape_of, grad=False)
def _(g):
    return call(g.tensor((2, 3), "f", grad=False))


@op("Tensor.new_empty", check=_shape_of, grad=False)
def _(g):
    return call(g.tensor((3,), "f", grad=False), 2, 3)


@op("Tensor.adjoint", aliases=True)
def _(g):
    return call(g.tensor((2, 3), "fc"))


@op("range")
def _(g):
    return call(*g.pick((0, 4), (1.0, 2.0, 0.5), (3, 0, -1)))


@op("scalar_tensor")
def _(g):
    return call(g.pick(2.5, 3, True))


@op("asarray")
def _(g):
    return call(g.pick([1.0, 2.0], [[1, 2], [3, 4]], 2.5))


@op("Tensor.sum_to_size")
def _(g):
    return call(g.tensor((2, 3), "fi"), g.pick((1, 3), (3,), (2, 1)))


@op("Tensor.cdouble Tensor.cfloat")
def _(g):
    return call(g.tensor(kinds="fi"))


@op("is_inference is_signed Tensor.dim_order", grad=False, layouts=False, reason="says what a tensor is")
def _(g):
    return call(g.tensor(kinds="fi", special=True))


@op("is_same_size", grad=False, layouts=False, reason="says what a tensor is")
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, g.like(x))
