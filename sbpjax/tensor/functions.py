"""Public functions and methods of the elementwise, comparison, linear algebra and arrangement ops.

Most are bound from the op's signature (`sbpjax.tensor.binding`); written out are those whose call form differs from
the op's. A name in `METHODS` is a method of `Tensor` too, one in `INPLACE` also has an in-place form with a trailing
underscore.
"""

from __future__ import annotations

from operator import index as as_int
from typing import TYPE_CHECKING, Any

import numpy as np

from sbpjax.errors import OpError, OpTypeError, message
from sbpjax.ops import activation, arithmetic, arrange, compare, elementwise, linalg, matrix
from sbpjax.ops import einsum as _einsum

from . import dispatch, unread
from . import dtype as dtypes
from .argument_names import NUMPY, REST, take_names
from .binding import bind, hashable, inplace_of, into_out, must_be_tensor, publish
from .inplace import inplace as write_into
from .oneflow_arguments import take_oneflow
from .op import op_of
from .tensor import Tensor, attach

_UNARY = """exp exp2 expm1 log log1p log2 log10 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
 sigmoid erf erfc erfinv lgamma digamma reciprocal neg positive abs square sign floor ceil trunc round frac isnan
 isfinite isinf isposinf isneginf nan_to_num logit sinc deg2rad rad2deg logical_not bitwise_not""".split()
_BINARY = """floor_divide remainder fmod maximum minimum fmax fmin clamp_min clamp_max atan2 hypot logaddexp
 xlogy copysign heaviside float_power""".split()
_COMPARE = """eq ne lt le gt ge isclose logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor
 bitwise_left_shift bitwise_right_shift""".split()
_ACTIVATION = "softmax log_softmax selu celu prelu".split()
_LINALG = "mm bmm mv dot outer inner addmm baddbmm addbmm addmv addr kron".split()
_MATRIX = "tril triu trace diag_embed diag".split()
_ARRANGE = "fliplr flipud rot90".split()

_THIRD = {
    "addmm": ("input", "mat1", "mat2"),
    "baddbmm": ("input", "batch1", "batch2"),
    "addbmm": ("input", "batch1", "batch2"),
    "addmv": ("input", "mat", "vec"),
    "addr": ("input", "vec1", "vec2"),
    "bmm": ("input", "mat2"),
    "mm": ("input", "mat2"),
    "mv": ("input", "vec"),
    "outer": ("input", "vec2"),
    "clamp_min": ("input", "min"),
    "clamp_max": ("input", "max"),
    "heaviside": ("input", "values"),
    "prelu": ("input", "weight"),
}

# of the in-place forms alone
_SECOND = {"addcmul": ("tensor1", "tensor2"), "addcdiv": ("tensor1", "tensor2"), "lerp": ("end", "weight")}

_bound = {}
for _module, _names in (
    (elementwise, _UNARY),
    (arithmetic, _BINARY),
    (compare, _COMPARE),
    (activation, _ACTIVATION),
    (linalg, _LINALG),
    (matrix, _MATRIX),
    (arrange, _ARRANGE),
):
    for _name in _names:
        _bound[_name] = bind(getattr(_module, _name), _THIRD.get(_name, ("input", "other")))
globals().update(_bound)

if TYPE_CHECKING:  # the bound functions

    def __getattr__(name: str) -> Any: ...


# ------------------------------------------------------------------------------------------------------ arithmetic

_ADD, _SUB, _MUL, _DIV = (op_of(f) for f in (arithmetic.add, arithmetic.sub, arithmetic.mul, arithmetic.div))
_RELU = op_of(activation.relu)


def _finish(result, out):
    return result if out is None else into_out(out, result)


def _two(op, a, b):
    return dispatch.binary(op, a, b) if isinstance(a, Tensor) else dispatch.run(op, (a, b))


def _sum_of(*terms):
    total = terms[0]
    for term in terms[1:]:
        total = arithmetic.add(total, term)
    return total


def _added(terms: tuple, alpha, inplace: bool, out):
    """Return the sum of any number of tensors, as one op."""
    if alpha != 1 or any(not isinstance(term, Tensor) for term in terms):
        seen = (
            f"alpha={alpha}" if alpha != 1 else f"a {[type(t).__name__ for t in terms if not isinstance(t, Tensor)][0]}"
        )
        raise OpTypeError(message("add(...)", seen, "alpha and numbers come with two terms", "add(add(x, y), z)"))
    op = op_of(_sum_of)
    return write_into(terms[0], op, terms[1:]) if inplace else _finish(dispatch.run(op, terms), out)


def add(input=None, other=None, *more, alpha: float = 1, inplace: bool = False, out=None, inputs=None) -> Tensor:
    """Return ``input + alpha * other``, or the sum of several tensors, given one by one or as a list, as one op.

    Args:
        input: a tensor or a number; or a list of tensors.
        other: a tensor or a number.
        more: further tensors.
        alpha: factor of `other`.
        inplace: write the sum into `input`.
        out: a tensor to write the sum into.
        inputs: the list of tensors by OneFlow's name.
    """
    if more or other is None:
        terms = input if inputs is None else inputs
        if not more and not isinstance(terms, (list, tuple)):
            rule = "two terms, or a list of tensors"
            raise OpTypeError(message("add(...)", f"one {type(terms).__name__}", rule, "add(x, y)"))
        return _added((input, other, *more) if more else tuple(terms), alpha, inplace, out)
    if inplace:
        return input.add_(other, alpha=alpha)
    op = _ADD if alpha == 1 else op_of(arithmetic.add, (("alpha", hashable(alpha)),))
    return _finish(_two(op, input, other), out)


def sub(input, other, *, alpha=1, inplace: bool = False, out=None) -> Tensor:
    """Return ``input - alpha * other``; with ``inplace=True`` written into ``input``."""
    if inplace:
        return input.sub_(other, alpha=alpha)
    op = _SUB if alpha == 1 else op_of(arithmetic.sub, (("alpha", hashable(alpha)),))
    return _finish(_two(op, input, other), out)


def rsub(input, other, *, alpha=1) -> Tensor:
    """Return ``other - alpha * input``."""
    return _two(op_of(arithmetic.rsub, (("alpha", hashable(alpha)),)), input, other)


def mul(input, other, *, inplace: bool = False, out=None) -> Tensor:
    """Return ``input * other``; with ``inplace=True`` written into ``input``."""
    if inplace:
        return input.mul_(other)
    return _finish(_two(_MUL, input, other), out)


def div(input, other, *, rounding_mode: str | None = None, out=None) -> Tensor:
    """Return ``input / other``: exact, or rounded ``"trunc"`` or ``"floor"``."""
    op = _DIV if rounding_mode is None else op_of(arithmetic.div, (("rounding_mode", rounding_mode),))
    return _finish(_two(op, input, other), out)


def relu(input=None, inplace: bool = False, *, out=None, x=None) -> Tensor:
    """Return ``max(input, 0)``; with ``inplace`` written into ``input``. OneFlow calls the tensor ``x``."""
    if input is None:
        input = x
    if inplace:
        return write_into(input, _RELU)
    result = dispatch.unary(_RELU, input) if input.__class__ is Tensor else dispatch.run(_RELU, (input,))
    return result if out is None else into_out(out, result)


def pow(input, exponent, *, inplace: bool = False, out=None) -> Tensor:
    """Return ``input ** exponent``; either may be a number; with ``inplace=True`` written into ``input``."""
    if inplace:
        return input.pow_(exponent)
    return _finish(input**exponent, out)


def clamp(input: Tensor, min=None, max=None, *, out=None) -> Tensor:
    """Return ``input`` limited to ``[min, max]``; the bounds are numbers, tensors or None."""
    if min is None and max is None:
        raise OpTypeError(
            message(
                "clamp(x)", "neither min nor max", "At least one of 'min' or 'max' must not be None", "x.clamp(min=0)"
            )
        )
    return _finish(dispatch.run(op_of(arithmetic.clamp), (input, min, max)), out)


def where(condition: Tensor, input=None, other=None, *, out=None, x=None, y=None):
    """Return ``input`` where the condition holds, else ``other``; alone, the indices where it holds.

    OneFlow calls them ``x`` and ``y``.
    """
    if input is None:
        input = x
    if other is None:
        other = y
    if input is None and other is None:
        from .selection import nonzero

        return nonzero(condition, as_tuple=True)
    return _finish(dispatch.run(op_of(arithmetic.where), (condition, input, other)), out)


def lerp(input: Tensor, end: Tensor, weight) -> Tensor:
    """Return ``input + weight * (end - input)``."""
    return dispatch.run(op_of(arithmetic.lerp), (input, end, weight))


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value=1) -> Tensor:
    """Return ``input + value * tensor1 * tensor2``."""
    return dispatch.run(op_of(arithmetic.addcmul, (("value", hashable(value)),)), (input, tensor1, tensor2))


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value=1) -> Tensor:
    """Return ``input + value * tensor1 / tensor2``."""
    return dispatch.run(op_of(arithmetic.addcdiv, (("value", hashable(value)),)), (input, tensor1, tensor2))


# ---------------------------------------------------------------------------------------------------- linear algebra

_MATMUL = op_of(linalg.matmul)


def matmul(
    input: Tensor, other: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0, *, out=None
) -> Tensor:
    """Return ``alpha`` times the matrix product, with PyTorch's rules for 1-d inputs and batch dims.

    Args:
        input: a vector, a matrix, or a stack of them.
        other: likewise.
        transpose_a: swap the last two dims of `input` first; it keeps its layout.
        transpose_b: swap the last two dims of `other` first; it keeps its layout.
        alpha: factor of the product.
        out: a tensor to write it into.
    """
    if transpose_a or transpose_b or alpha != 1.0:
        static = (("transpose_a", bool(transpose_a)), ("transpose_b", bool(transpose_b)), ("alpha", hashable(alpha)))
        return _finish(dispatch.run(op_of(linalg.matmul, static), (input, other)), out)
    return _finish(_two(_MATMUL, input, other), out)


def _matmul_operator(self: Tensor, other: Tensor) -> Tensor:
    return dispatch.binary(_MATMUL, self, other) if other.__class__ is Tensor else matmul(self, other)


def tensordot(a: Tensor, b: Tensor, dims=2, out=None) -> Tensor:
    """Return the contraction of the last ``dims`` dims of ``a`` with the first of ``b``, or of the dims listed.

    A contracted dim of size 1 broadcasts to the other's size.
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if out is not None:
        return into_out(out, tensordot(a, b, dims))
    return dispatch.run(op_of(linalg.tensordot, (("dims", hashable(dims)),)), (a, b))


def einsum(equation: Any, *operands) -> Tensor:
    """Return the sum of products that an equation such as ``"bij,bjk->bik"`` names.

    ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` is the same as ``einsum("ab,bc->ac", x, y)``; ``...`` may stand in both.
    """
    if isinstance(equation, Tensor) and operands and not isinstance(operands[0], Tensor):
        equation, operands = _einsum.spelled((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        rule = "the equation is a string, and comes first"
        raise OpTypeError(message("einsum(...)", f"a {type(equation).__name__}", rule, 'einsum("ij,jk->ik", x, y)'))
    return dispatch.run(op_of(_einsum.einsum, (("equation", equation),)), tuple(operands))


def cross(input: Tensor, other: Tensor, dim: int | None = None, *, out=None) -> Tensor:
    """Return the cross product along a dim of size 3; by default the first such dim."""
    if dim is None:
        shape = common_shape("cross(x, y)", input, other)
        dim = next((d for d, n in enumerate(shape) if n == 3), -1)
    return _finish(dispatch.run(op_of(matrix.cross, (("dim", as_int(dim)),)), (input, other)), out)


def vdot(input: Tensor, other: Tensor, *, out=None) -> Tensor:
    """Return the dot product of two vectors, the first conjugated."""
    if input.dtype.is_complex:
        return _finish(_bound["dot"](input.conj(), other), out)
    return _finish(_bound["dot"](input, other), out)


# ------------------------------------------------------------------------------------------------------- arrangement


def _listed(tensors, asked: str) -> tuple:
    if isinstance(tensors, Tensor) or not isinstance(tensors, (list, tuple)):
        raise OpTypeError(
            message(
                asked, f"a {type(tensors).__name__}", "the tensors come as one list or tuple", f"{asked[:-5]}([x, y])"
            )
        )
    for position, x in enumerate(tensors):
        if not hasattr(x, "shape"):
            rule = f"expected Tensor as element {position}, but got {type(x).__name__}"
            raise OpTypeError(message(asked, f"a {type(x).__name__}", rule, "sbpjax.tensor(value)"))
    return tuple(tensors)


def cat(tensors, dim: int = 0, *, out=None) -> Tensor:
    """Return tensors joined along a dim they have."""
    found = dispatch.run(op_of(arrange.cat, (("dim", as_int(dim)),)), _listed(tensors, "cat(...)"))
    return _finish(found, out)


def stack(tensors, dim: int = 0, *, out=None) -> Tensor:
    """Return tensors of one shape joined along a new dim."""
    found = dispatch.run(op_of(arrange.stack, (("dim", as_int(dim)),)), _listed(tensors, "stack(...)"))
    return _finish(found, out)


def hstack(tensors) -> Tensor:
    """Return tensors joined along dim 1 (0 for vectors)."""
    return dispatch.run(op_of(arrange.hstack), _listed(tensors, "hstack(...)"))


def vstack(tensors) -> Tensor:
    """Return tensors joined along dim 0, vectors as rows."""
    return dispatch.run(op_of(arrange.vstack), _listed(tensors, "vstack(...)"))


def dstack(tensors) -> Tensor:
    """Return tensors joined along dim 2."""
    return dispatch.run(op_of(arrange.dstack), _listed(tensors, "dstack(...)"))


def column_stack(tensors) -> Tensor:
    """Return vectors as the columns of a matrix."""
    return dispatch.run(op_of(arrange.column_stack), _listed(tensors, "column_stack(...)"))


def _spread(values) -> tuple:
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else tuple(values)


def repeat(input: Tensor, *repeats) -> Tensor:
    """Return the tensor repeated along each dim."""
    return dispatch.run(op_of(arrange.repeat, (("repeats", hashable(_spread(repeats))),)), (input,))


def _some(name: str, dims: tuple) -> None:
    if not dims:
        raise OpTypeError(message(f"{name}(x)", "no dims", "dims is a required argument", f"{name}(x, (0,))"))


def tile(input: Tensor, *dims) -> Tensor:
    """Return the tensor repeated along its last dims."""
    _some("tile", dims)
    return dispatch.run(op_of(arrange.tile, (("dims", hashable(_spread(dims))),)), (input,))


def repeat_interleave(input: Tensor, repeats=None, dim: int | None = None, output_size: int | None = None) -> Tensor:
    """Return each element (along a dim) repeated; ``repeats`` is a number, or one number per index.

    Alone, ``input`` is taken for the repeats of 0, 1, 2, …
    """
    if repeats is None:
        from .creation import arange

        input, repeats, dim = arange(input.shape[0], dtype=input.dtype, device=input.device), input, 0
    repeats = tuple(repeats.tolist()) if isinstance(repeats, Tensor) and repeats.ndim else hashable(repeats)
    return dispatch.run(op_of(arrange.repeat_interleave, (("repeats", repeats), ("dim", dim))), (input,))


def flip(input: Tensor, *dims) -> Tensor:
    """Return the tensor with dims reversed."""
    _some("flip", dims)
    return dispatch.run(op_of(arrange.flip, (("dims", hashable(_spread(dims))),)), (input,))


def roll(input: Tensor, shifts, dims=None) -> Tensor:
    """Return the tensor with elements shifted along dims, around the end."""
    return dispatch.run(op_of(arrange.roll, (("shifts", hashable(shifts)), ("dims", hashable(dims)))), (input,))


def meshgrid(*tensors, indexing: str = "ij") -> tuple:
    """Return the coordinate grids of vectors."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise OpError(message("meshgrid()", "no tensors", "there is at least one tensor", "meshgrid(x, y)"))
    return dispatch.run(op_of(arrange.meshgrid, (("indexing", indexing),)), tuple(tensors))


def _atleast(n: int):
    def atleast(*tensors, **named):
        tensors = _by_name(f"atleast_{n}d", tensors, named)
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            return tuple(atleast(x) for x in tensors[0])
        if len(tensors) != 1:
            return tuple(atleast(x) for x in tensors)
        x = tensors[0]
        if x.ndim >= n:
            return x
        if n == 1 or x.ndim == 0:
            return x.reshape((1,) * n)
        return x.unsqueeze(-1) if x.ndim == 2 else x.unsqueeze(0) if n == 2 else x.unsqueeze(0).unsqueeze(-1)

    atleast.__doc__ = f"Return tensors with at least {n} dims."
    return atleast


def _by_name(name: str, tensors: tuple, named: dict) -> tuple:
    """Return tensors given in order, or by OneFlow's names: one as ``input``, several as ``tensors``."""
    if not named:
        return tensors
    if tensors or len(named) > 1 or named.keys() - {"input", "tensors"}:
        seen = f"argument {next(iter(named))!r}"
        raise OpTypeError(
            message(f"{name}(...)", seen, "tensors in order, or input=x, or tensors=[x, y]", f"{name}(x)")
        )
    return tuple(named.values())


atleast_1d, atleast_2d, atleast_3d = _atleast(1), _atleast(2), _atleast(3)


def broadcast_tensors(*tensors) -> tuple:
    """Return the tensors as views of their common shape."""
    shape = common_shape("broadcast_tensors(...)", *tensors)
    return tuple(t.expand(shape) for t in tensors)


def common_shape(asked: str, *tensors) -> tuple[int, ...]:
    """Return the shape that tensors broadcast to.

    Raises:
        OpError: there is none.
    """
    shapes = [tuple(t.shape) for t in tensors]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        rule = "sizes are equal or 1, compared from the last dim"
        seen = " and ".join(str(list(shape)) for shape in shapes)
        raise OpError(message(asked, f"shapes {seen}", rule, "reshape or unsqueeze one of them")) from None


# ----------------------------------------------------------------------------------------------------- copies, dtypes


_CLONE = op_of(elementwise.identity)


def clone(input: Tensor, *, memory_format=None) -> Tensor:
    """Return a copy, on the tape."""
    return unread.through(input, _CLONE)


def to_dtype(input: Tensor, dtype) -> Tensor:
    """Return the tensor in another dtype; itself if it has that dtype."""
    dtype = dtypes.of(dtype)
    if input.dtype == dtype:
        return input
    return dispatch.unary(op_of(elementwise.to_dtype, (("dtype", dtype.np),)), input)


def is_tensor(obj) -> bool:
    """Return whether an object is a `Tensor`."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a floating-point one."""
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is a complex one."""
    return input.dtype.is_complex


def is_nonzero(input: Tensor) -> bool:
    """Return whether the one element is not zero."""
    must_be_tensor("is_nonzero", input)
    return bool(input)


def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return input.shape.numel()


def result_type(tensor, other) -> dtypes.dtype:
    """Return the dtype of an arithmetic op on two tensors or numbers."""
    from sbpjax.ops.promote import result_type as promoted

    return dtypes.of(promoted(*[x._fresh()._array if isinstance(x, Tensor) else x for x in (tensor, other)]))


def promote_types(type1, type2) -> dtypes.dtype:
    """Return the smallest dtype that holds both."""
    from sbpjax.ops.promote import promote_types as promoted

    return dtypes.of(promoted(dtypes.of(type1).np, dtypes.of(type2).np))


def can_cast(from_, to) -> bool:
    """Return whether a dtype may be cast to another: its kind is not higher."""
    from sbpjax.ops.promote import category

    return category(dtypes.of(from_).np) <= category(dtypes.of(to).np)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether all elements are close."""
    return bool(_bound["isclose"](input, other, rtol, atol, equal_nan).all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether shape and all elements agree."""
    if not isinstance(other, Tensor):
        raise OpTypeError(message("equal(x, y)", f"a {type(other).__name__}", "y is a tensor", "(x == y).all()"))
    return input.shape == other.shape and bool(_bound["eq"](input, other).all())


subtract, multiply, divide, true_divide, negative, absolute = sub, mul, div, div, _bound["neg"], _bound["abs"]
arcsin, arccos, arctan, arctan2 = _bound["asin"], _bound["acos"], _bound["atan"], _bound["atan2"]
arcsinh, arccosh, arctanh = _bound["asinh"], _bound["acosh"], _bound["atanh"]
clip, concat, concatenate, ger = clamp, cat, cat, _bound["outer"]
greater, greater_equal, less, less_equal, not_equal = (_bound[n] for n in ("gt", "ge", "lt", "le", "ne"))

# ------------------------------------------------------------------------------------------------------------- methods

METHODS = (
    *_UNARY,
    *_BINARY,
    *_COMPARE,
    *_ACTIVATION,
    *_LINALG,
    *_MATRIX,
    *_ARRANGE,
    *"""relu add sub rsub mul div pow clamp lerp addcmul addcdiv matmul repeat tile repeat_interleave flip roll clone
 is_floating_point is_complex is_nonzero numel allclose equal subtract multiply divide true_divide negative absolute
 arcsin arccos arctan arctan2 arcsinh arccosh arctanh clip cross ger greater greater_equal less less_equal
 not_equal""".split(),
)
INPLACE = {
    **{n: getattr(elementwise, n) for n in _UNARY if not n.startswith("is")},
    **{
        n: getattr(arithmetic, n) for n in (*_BINARY, "add", "sub", "mul", "div", "clamp", "lerp", "addcmul", "addcdiv")
    },
    **{n: getattr(compare, n) for n in _COMPARE if n != "isclose"},
    **{n: getattr(activation, n) for n in ("relu", "softmax")},
    **{n: getattr(matrix, n) for n in ("tril", "triu")},
    **{n: getattr(linalg, n) for n in ("addmm", "baddbmm", "addbmm", "addmv", "addr")},
}


_SAME_INPLACE = (
    *(("multiply", "mul"), ("divide", "div"), ("true_divide", "div"), ("subtract", "sub"), ("clip", "clamp")),
    *(("absolute", "abs"), ("negative", "neg"), ("arctan2", "atan2"), ("greater", "gt"), ("greater_equal", "ge")),
    *(("less", "lt"), ("less_equal", "le"), ("not_equal", "ne"), ("arcsin", "asin"), ("arccos", "acos")),
    *(("arctan", "atan"), ("arcsinh", "asinh"), ("arccosh", "acosh"), ("arctanh", "atanh")),
)


def _pow_(self: Tensor, exponent) -> Tensor:
    """Write ``self ** exponent`` into this tensor and return it."""
    from .inplace import inplace

    if isinstance(exponent, Tensor):
        return inplace(self, op_of(arithmetic.pow), (exponent,))
    return inplace(self, op_of(arithmetic.pow_scalar, (("exponent", hashable(exponent)),)))


def _float_power_(self: Tensor, exponent) -> Tensor:
    """Write ``self ** exponent``, which is float64 or complex128, into this tensor and return it."""
    if self.dtype not in (dtypes.float64, dtypes.complex128):
        rule = "the result of float_power is float64, or complex128, and so is the tensor it is written into"
        raise OpTypeError(message("x.float_power_(y)", f"x of {self.dtype!r}", rule, "x = x.float_power(y)"))
    return inplace_of(arithmetic.float_power, "float_power_")(self, exponent)


def _where_method(self: Tensor, condition=None, other=None, *, x=None, y=None) -> Tensor:
    """Return this tensor where the condition holds, else ``other``.

    The condition may also come first, of bools or integers as in OneFlow: ``condition.where(x, y)``.
    """
    if x is not None:
        return where(self, x, other if y is None else y)
    if not self.dtype.is_floating_point and not (isinstance(condition, Tensor) and condition.dtype == dtypes.bool_):
        self, condition = condition, self
    chosen: Any = where(condition, self, other)
    return chosen


def _operator_inplace(name: str):
    def method(self, other):
        return getattr(self, name)(other)

    return method


def _attach() -> None:
    space = globals()
    for name in METHODS:
        setattr(Tensor, name, space[name])
    for name, fn in INPLACE.items():
        setattr(Tensor, f"{name}_", inplace_of(fn, f"{name}_", _SECOND.get(name, _THIRD.get(name, ())[1:])))
    attach(pow_=_pow_, float_power_=_float_power_, vdot=vdot)
    for name, same in _SAME_INPLACE:
        setattr(Tensor, f"{name}_", getattr(Tensor, f"{same}_"))
    attach(where=_where_method)
    for name in ("add", "sub", "mul", "pow"):
        setattr(Tensor, f"__i{name}__", _operator_inplace(f"{name}_"))
    attach(__itruediv__=_operator_inplace("div_"))
    attach(__ifloordiv__=_operator_inplace("floor_divide_"))
    attach(__imod__=_operator_inplace("remainder_"))
    attach(__iand__=_operator_inplace("bitwise_and_"))
    attach(__ior__=_operator_inplace("bitwise_or_"))
    attach(__ixor__=_operator_inplace("bitwise_xor_"))
    attach(__matmul__=_matmul_operator)
    attach(__rmatmul__=lambda self, other: matmul(other, self))


_attach()
publish(globals(), "addcmul addcdiv lerp hstack vstack dstack column_stack tensordot float_power vdot")
publish(globals(), "is_floating_point is_complex is_nonzero numel clone allclose equal", out=False)
publish(globals(), "atleast_1d atleast_2d atleast_3d broadcast_tensors cross", out=False)
take_names(globals(), "cat concat concatenate stack repeat_interleave", **NUMPY)
take_names(globals(), "flip tile", dims=REST)
take_names(globals(), "repeat", repeats=REST, repeat_shape=REST)
take_names(globals(), "dot", tensor="other")
take_names(globals(), "float_power", exponent="other")
take_oneflow(globals())
