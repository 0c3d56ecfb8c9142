"""Elementwise functions, products and rearrangements with custom argument handling."""

from __future__ import annotations

from operator import index as as_int
from typing import Any

import numpy as np

from sbpjax._core.ops import arithmetic, elementwise, powers, promote
from sbpjax._core.ops.linalg import einsum as _einsum
from sbpjax._core.ops.linalg import matrix
from sbpjax._core.ops.linalg import products as linalg
from sbpjax._core.ops.shapes import arrange
from sbpjax._core.tensor.calls.binding import into_out, must_be_tensor
from sbpjax._core.tensor.creation.creation import arange
from sbpjax._core.tensor.creation.number_range import check_fits
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.dispatch.scalars import hashable
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage import lazy_views
from sbpjax._core.tensor.storage.inplace import inplace as write_into
from sbpjax._core.tensor.storage.payload import payload
from sbpjax._core.tensor.storage.storage import set_data
from sbpjax.errors import OpError, OpTypeError

from .table.checks import NUMBERS, raise_for_number

# ------------------------------------------------------------------------------------------------------ arithmetic

_ADD = op_of(arithmetic.add)


def _finish(result, out):
    return result if out is None else into_out(out, result)


def _dispatch_binary(op, a, b):
    return dispatch.binary(op, a, b) if isinstance(a, Tensor) else dispatch.run(op, (a, b))


def _sum_of(*terms):
    total = terms[0]
    for term in terms[1:]:
        total = arithmetic.add(total, term)
    return total


def _add_terms(terms: tuple, alpha, inplace: bool, out):
    """Return the sum of any number of tensors, as one op."""
    if alpha != 1 or any(not isinstance(term, Tensor) for term in terms):
        seen = (
            f"alpha={alpha}" if alpha != 1 else f"a {[type(t).__name__ for t in terms if not isinstance(t, Tensor)][0]}"
        )
        raise OpTypeError("add(...)", seen, "alpha and numbers come with two terms", "add(add(x, y), z)")
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

    Returns:
        The shapes broadcast, the dtypes promote. A split stays where the others are split alike or broadcast; a partial
        sum stays one.

    Raises:
        OpError: the shapes do not broadcast.
        OpTypeError: ``alpha`` or a number with more than two terms.
        MixedTensorError: some are local, others global, or they are on different placements.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.tensor([1.0, 2.0], placement=p, sbp=flow.sbp.split(0))
        >>> flow.add(x, x, alpha=2).tolist(), flow.add(x, 1).sbp
        ([3.0, 6.0], (sbpjax.sbp.split(dim=0),))
    """
    if more or other is None:
        terms = input if inputs is None else inputs
        if not more and not isinstance(terms, (list, tuple)):
            rule = "two terms, or a list of tensors"
            raise OpTypeError("add(...)", f"one {type(terms).__name__}", rule, "add(x, y)")
        return _add_terms((input, other, *more) if more else tuple(terms), alpha, inplace, out)
    if inplace:
        return input.add_(other, alpha=alpha)
    op = _ADD if alpha == 1 and alpha is not True else op_of(arithmetic.add, (("alpha", hashable(alpha)),))
    return _finish(_dispatch_binary(op, input, other), out)


def pow(input, exponent, *, inplace: bool = False, out=None) -> Tensor:
    """Return ``input ** exponent``; either may be a number; with ``inplace=True`` written into ``input``.

    Args:
        input: a tensor or a number.
        exponent: a tensor or a number.

    Returns:
        The shapes broadcast, the dtypes promote. A split stays; a partial sum is reduced first.

    Example:
        >>> flow.pow(flow.tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
    """
    if inplace:
        return input.pow_(exponent)
    if input.__class__ in NUMBERS and exponent.__class__ in NUMBERS:
        raise_for_number("pow", ("input", "exponent"), (input, exponent))
    return _finish(input**exponent, out)


def where(condition: Tensor, input=None, other=None, *, out=None):
    """Return ``input`` where the condition holds, else ``other``; alone, the indices where it holds.

    Args:
        condition: bools, or integers that hold if they are not 0.
        input: a tensor or a number.
        other: a tensor or a number.

    Returns:
        The shapes broadcast, the dtypes promote. A split stays where the others are split alike or broadcast.

    Example:
        >>> flow.where(flow.tensor([True, False]), flow.tensor([1.0, 2.0]), 0.0)
        tensor([1., 0.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    for x, number in ((input, other), (other, input)):
        if number.__class__ is int and isinstance(x, Tensor) and not (x.dtype.is_floating_point or x.dtype.is_complex):
            check_fits("where(condition, x, y)", number, x.dtype.np if x.dtype.np.kind != "b" else np.dtype(np.int64))
    return _finish(dispatch.apply(arithmetic.where, condition, input, other), out)


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

    Returns:
        ``(..., M, N)``, without M or N where an input is a vector. Splits of batch dims, of the rows of `input` and of
        the columns of `other` stay splits of the result. If the contracted dim is split in both, the result is a
        partial sum. A partial sum times a broadcast tensor stays one.

    Raises:
        OpError: the sizes of the contracted dim differ.
        OpTypeError: the dtypes differ.
        MixedTensorError: one is local, the other global, or they are on different placements.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 6, placement=p, sbp=flow.sbp.split(1))
        >>> w = flow.ones(6, 2, placement=p, sbp=flow.sbp.split(0))
        >>> y = flow.matmul(x, w)
        >>> y.shape, y.sbp, y[0].tolist()
        (sbpjax.Size([4, 2]), (sbpjax.sbp.partial_sum,), [6.0, 6.0])
    """
    if transpose_a or transpose_b or alpha != 1.0:
        return _finish(
            dispatch.apply(
                linalg.matmul, input, other, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b), alpha=alpha
            ),
            out,
        )
    return _finish(_dispatch_binary(_MATMUL, input, other), out)


def tensordot(a: Tensor, b: Tensor, dims=2, out=None) -> Tensor:
    """Return the contraction of the last ``dims`` dims of ``a`` with the first of ``b``, or of the dims listed.

    A contracted dim of size 1 broadcasts to the other's size.
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if out is not None:
        return into_out(out, tensordot(a, b, dims))
    return dispatch.apply(linalg.tensordot, a, b, dims=dims)


def einsum(equation: Any, *operands) -> Tensor:
    """Return the sum of products that an equation such as ``"bij,bjk->bik"`` names.

    ``einsum(x, [0, 1], y, [1, 2], [0, 2])`` is the same as ``einsum("ab,bc->ac", x, y)``; ``...`` may be in both.

    Args:
        equation: letters for the dims of every tensor, and of the result after ``->``.
        operands: the tensors.

    Returns:
        The dims after the arrow. A split of a dim that stays is kept; a split of one that is summed in all that have
        it gives a partial sum.

    Raises:
        OpTypeError: the equation is neither a text nor a tensor with its list of dims.

    Example:
        >>> x = flow.ones(4, 6).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(1))
        >>> flow.einsum("ij,kj->ik", x, x).shape, flow.einsum("ij,kj->ik", x, x).sbp
        (sbpjax.Size([4, 4]), (sbpjax.sbp.partial_sum,))
    """
    if isinstance(equation, Tensor) and operands and not isinstance(operands[0], Tensor):
        equation, operands = _einsum.spell_equation((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not isinstance(equation, str):
        rule = "the equation is a string, and comes first"
        raise OpTypeError("einsum(...)", f"a {type(equation).__name__}", rule, 'einsum("ij,jk->ik", x, y)')
    return dispatch.apply(_einsum.einsum, *operands, equation=equation)


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross product along a dim of size 3; by default the first such dim."""
    if dim is None:
        shape = common_shape("cross(x, y)", input, other)
        dim = next((d for d, n in enumerate(shape) if n == 3), -1)
    return dispatch.apply(matrix.cross, input, other, dim=as_int(dim))


# ------------------------------------------------------------------------------------------------------- arrangement


def repeat_interleave(input: Tensor, repeats=None, dim: int | None = None, output_size: int | None = None) -> Tensor:
    """Return each element (along a dim) repeated; ``repeats`` is a number, or one number per index.

    Alone, ``input`` is taken for the repeats of 0, 1, 2, …

    Args:
        repeats: a number, or a tensor of one per index.
        dim: the dim; None for the flattened tensor.
        output_size: the size of the result in the dim, if it is known.

    Returns:
        Splits of other dims stay.

    Example:
        >>> flow.repeat_interleave(flow.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
    """
    if repeats is None:
        input, repeats, dim = arange(input.shape[0], dtype=input.dtype, device=input.device), input, 0
    repeats = tuple(repeats.tolist()) if isinstance(repeats, Tensor) and repeats.ndim else hashable(repeats)
    return dispatch.apply(arrange.repeat_interleave, input, repeats=repeats, dim=dim)


def meshgrid(*tensors, indexing: str = "ij") -> tuple:
    """Return the coordinate grids of vectors.

    Args:
        tensors: vectors of one dtype.
        indexing: ``"ij"``, or ``"xy"``, which swaps the first two dims.

    Returns:
        A grid per vector, of the shape of all sizes; a split of a vector becomes one of its dim.

    Raises:
        OpError: no tensors.
        OpTypeError: they have several dtypes.
        OpValueError: another ``indexing``.

    Example:
        >>> flow.meshgrid(flow.tensor([1, 2]), flow.tensor([3, 4, 5]))[0].tolist()
        [[1, 1, 1], [2, 2, 2]]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise OpError("meshgrid()", "no tensors", "there is at least one tensor", "meshgrid(x, y)")
    return dispatch.apply(arrange.meshgrid, *tensors, indexing=indexing)


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
        raise OpTypeError(f"{name}(...)", seen, "tensors in order, or input=x, or tensors=[x, y]", f"{name}(x)")
    return tuple(named.values())


atleast_1d, atleast_2d, atleast_3d = _atleast(1), _atleast(2), _atleast(3)


def broadcast_tensors(*tensors) -> tuple:
    """Return the tensors as views of their common shape."""
    shape = common_shape("broadcast_tensors(...)", *tensors)
    return tuple(t.expand(shape) for t in tensors)


def common_shape(operation: str, *tensors) -> tuple[int, ...]:
    """Return the shape that tensors broadcast to."""
    shapes = [tuple(t.shape) for t in tensors]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        rule = "sizes are equal or 1, compared from the last dim"
        seen = " and ".join(str(list(shape)) for shape in shapes)
        raise OpError(operation, f"shapes {seen}", rule, "reshape or unsqueeze one of them") from None


# ----------------------------------------------------------------------------------------------------- copies, dtypes


_CLONE = op_of(elementwise.identity)


def clone(input: Tensor, *, memory_format=None) -> Tensor:
    """Return a copy, on the tape.

    Returns:
        The same shape, dtype and sbp.

    Example:
        >>> x = flow.tensor([1.0, 2.0])
        >>> x.clone().zero_(), x
        (tensor([0., 0.]), tensor([1., 2.]))
    """
    return lazy_views.apply_to_view(input, _CLONE)


def to_dtype(input: Tensor, dtype) -> Tensor:
    """Return the tensor in another dtype; itself if it has that dtype."""
    dtype = dtypes.as_dtype(dtype)
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
    """Return the number of elements.

    Returns:
        The logical number, under any sbp.

    Example:
        >>> flow.numel(flow.ones(2, 3))
        6
    """
    return input.shape.numel()


def result_type(tensor, other) -> dtypes.dtype:
    """Return the dtype of an arithmetic op on two tensors or numbers."""
    return dtypes.as_dtype(promote.result_type(*[payload(x) if isinstance(x, Tensor) else x for x in (tensor, other)]))


def promote_types(type1, type2) -> dtypes.dtype:
    """Return the smallest dtype that holds both."""
    return dtypes.as_dtype(promote.promote_types(dtypes.as_dtype(type1).np, dtypes.as_dtype(type2).np))


def can_cast(from_, to) -> bool:
    """Return whether a dtype may be cast to another: not to a lower kind."""
    return promote.category(dtypes.as_dtype(from_).np) <= promote.category(dtypes.as_dtype(to).np)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether all elements are close.

    Args:
        rtol: tolerance relative to ``other``.
        atol: absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        A bool, on every rank; any sbp.

    Example:
        >>> flow.allclose(flow.tensor([1.0]), flow.tensor([1.0 + 1e-7]))
        True
    """
    return bool(input.isclose(other, rtol, atol, equal_nan).all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether shape and all elements agree.

    Returns:
        A bool, on every rank; any sbp.

    Raises:
        OpTypeError: ``other`` is no tensor.

    Example:
        >>> flow.equal(flow.tensor([1, 2]), flow.tensor([1, 2]))
        True
    """
    if not isinstance(other, Tensor):
        raise OpTypeError("equal(x, y)", f"a {type(other).__name__}", "y is a tensor", "(x == y).all()")
    return input.shape == other.shape and bool((input == other).all())


def pow_(self: Tensor, exponent) -> Tensor:
    """Write ``self ** exponent`` into this tensor and return it."""
    if isinstance(exponent, Tensor):
        return write_into(self, op_of(powers.pow), (exponent,))
    return write_into(self, op_of(powers.pow_scalar, (("exponent", hashable(exponent)),)))


def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, beta=1, alpha=1) -> Tensor:
    """Write `addbmm` into this tensor and return it; one that broadcasts gets the product's shape, as in PyTorch."""
    shape = (batch1.shape[-2], batch2.shape[-1]) if batch1.ndim == batch2.ndim == 3 else self.shape
    if tuple(self.shape) != shape and not self.requires_grad:
        set_data(self, self.detach().expand(shape).clone())
    options = (("beta", hashable(beta)), ("alpha", hashable(alpha)))
    return write_into(self, op_of(linalg.addbmm, options), (batch1, batch2))


def float_power_(self: Tensor, exponent) -> Tensor:
    """Write ``self ** exponent``, which is float64 or complex128, into this tensor and return it."""
    if self.dtype not in (dtypes.float64, dtypes.complex128):
        rule = "the result of float_power is float64, or complex128, and so is the tensor it is written into"
        raise OpTypeError("x.float_power_(y)", f"x of {self.dtype!r}", rule, "x = x.float_power(y)")
    return write_into(self, op_of(powers.float_power), (exponent,))


def where_method(self: Tensor, condition=None, other=None, *, x=None, y=None) -> Tensor:
    """Return this tensor where the condition holds, else ``other``.

    The condition may also come first, of bools or integers as in OneFlow: ``condition.where(x, y)``.
    """
    if x is not None:
        return where(self, x, other if y is None else y)
    if not self.dtype.is_floating_point and not (isinstance(condition, Tensor) and condition.dtype == dtypes.bool_):
        self, condition = condition, self
    chosen: Any = where(condition, self, other)
    return chosen
