"""Argument checks of rows (`check`), run before the op; parameters are arguments of the call form."""

from __future__ import annotations

import math

import numpy as np

from sbpjax._core.ops.conv.unpool import unpooled_sizes
from sbpjax._core.tensor.calls import bounds
from sbpjax._core.tensor.calls.bounds import check_dim, check_rows, check_size, check_tuples
from sbpjax._core.tensor.calls.op_errors import describe
from sbpjax._core.tensor.creation.number_range import check_fits
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import LinAlgError, OpError, OpTypeError, OpValueError

from .results import first_in_batch


def _call(operation: str, *rest) -> str:
    """Return a call as users write it: of a function ``gather(x, 0, index)``, of a method ``x.gather_(0, index)``."""
    return f"{operation}({', '.join(map(str, rest if operation.startswith('x.') else ('x', *rest)))})"


NUMBERS = frozenset((bool, int, float, complex))


def raise_for_number(name: str, parameters: tuple[str, ...], values: tuple) -> None:
    """Raise `OpTypeError` for the first of several arguments that is a number, where a tensor is required."""
    place = next(i for i, value in enumerate(values) if value.__class__ in NUMBERS)
    kind = type(values[place]).__name__
    rule = f"{name}(): argument {parameters[place]!r} (position {place + 1}) must be Tensor, not {kind}"
    fix = f"{parameters[place]}=sbpjax.tensor({values[place]!r})"
    raise OpTypeError(f"{name}({', '.join(parameters)})", f"{parameters[place]}={values[place]!r}", rule, fix)


def check_index(operation: str, input, dim, index) -> None:
    """Raise `OpBoundsError` unless every number of an index names a place in a dim, counted from the front."""
    check_dim(_call(operation, dim, "index"), index, input, int(dim))


def check_flat_index(operation: str, input, index) -> None:
    """Raise `OpBoundsError` unless every number of an index names an element, from either end."""
    check_size(_call(operation, "index"), index, input.shape.numel(), 0, negative=True)


def check_batch_index(operation: str, input, indices) -> None:
    """Raise `OpBoundsError` unless every number names a place in the dim after the batch."""
    check_size(_call(operation, "indices"), indices, input.shape[indices.ndim - 1], indices.ndim - 1)


def check_clamp_bounds(operation: str, input, min, max) -> None:
    """Raise `OpTypeError` unless one bound is given at least, and `OpError` for one that an integer dtype lacks."""
    if min is None and max is None:
        rule = "At least one of 'min' or 'max' must not be None"
        raise OpTypeError(f"{operation}(x)", "neither min nor max", rule, "x.clamp(min=0)")
    check_lower_bound(operation, input, min)
    check_lower_bound(operation, input, max)


def check_lower_bound(operation: str, input, min) -> None:
    """Raise `OpError` for an integer bound of integers that their dtype cannot hold."""
    if min.__class__ is int and not (-128 <= min < 128) and isinstance(input, Tensor):
        if not (input.dtype.is_floating_point or input.dtype.is_complex):
            check_fits(_call(operation, "min", "max"), min, input.dtype.np)


def check_upper_bound(operation: str, input, max) -> None:
    """Raise `OpError` for an integer bound of integers that their dtype cannot hold."""
    check_lower_bound(operation, input, max)


def check_masked_value(operation: str, input, value) -> None:
    """Raise `OpError` unless a number can become an element: of a dtype that holds it, and real in a real one."""
    if not isinstance(input, Tensor):
        return
    check_fits(_call(operation, "mask", "value"), value, input.dtype.np)
    if isinstance(value, Tensor) and value.dtype.is_complex and not input.dtype.is_complex:
        rule = f"value cannot be converted to type {input.dtype.name} without overflow"
        raise OpError(_call(operation, "mask", "value"), f"a value of {value.dtype.name}", rule, "value.real")


def check_fill_value(operation: str, input, fill_value) -> None:
    """Raise `OpError` unless a number can become an element: of a dtype that holds it, and real in a real one."""
    check_fits(_call(operation, "value"), fill_value, input.dtype.np)


def check_padding_value(operation: str, input, pad, value) -> None:
    """Raise `OpError` unless a number can become an element: of a dtype that holds it, and real in a real one."""
    if isinstance(input, Tensor):
        check_fits(_call(operation, "pad", "value"), value, input.dtype.np)


def check_index_and_value(operation: str, input, dim, index, value) -> None:
    """Raise `OpBoundsError` unless every number of an index names a place, and `OpError` unless the value fits."""
    check_signed_index(operation, input, dim, index)
    check_fits(_call(operation, dim, "index", "value"), value, input.dtype.np)


def check_index_and_source(operation: str, input, dim, index, src) -> None:
    """Raise `OpBoundsError` unless every number of an index names a place, and `OpError` unless a number fits."""
    check_index(operation, input, dim, index)
    if not isinstance(src, Tensor):
        check_fits(_call(operation, dim, "index", "value"), src, input.dtype.np)


def check_unpool_indices(operation: str, input, indices, kernel_size, stride, padding, output_size) -> None:
    """Raise `OpBoundsError` unless every index names an element of the un-pooled image."""
    n = int(operation[-2])  # of max_unpool2d
    if isinstance(input, Tensor) and isinstance(indices, Tensor) and input.ndim in (n + 1, n + 2):
        sizes = unpooled_sizes(tuple(input.shape[-n:]), kernel_size, stride, padding, output_size)
        check_size(_call(operation, "indices"), indices, math.prod(sizes), input.ndim - n)


# ----------------------------------------------------------------------------------------------- values that are read


def _is_integer(x) -> bool:
    if isinstance(x, Tensor):
        return not (x.dtype.is_floating_point or x.dtype.is_complex)
    return x.__class__ in (int, bool)


def check_divisor(operation: str, input, other) -> None:
    """Raise `OpValueError` if integers are divided by 0; a tensor of divisors is read where it is on the CPU."""
    if not (_is_integer(other) and _is_integer(input)):
        return
    if isinstance(other, Tensor):
        zero = any(not part.all() for part in bounds.parts_on_cpu(other))
    else:
        zero = not other
    if zero:
        seen = f"{describe(input)} by {describe(other)}"
        rule = "ZeroDivisionError: an integer has no quotient by 0, and no remainder"
        raise OpValueError(_call(operation, "other"), seen, rule, "x.float() / y gives inf and nan, or y.clamp(min=1)")


def check_rounded_divisor(operation: str, input, other, rounding_mode) -> None:
    """Raise `OpValueError` if integers are divided by 0, where the quotient is rounded."""
    if rounding_mode is not None:
        check_divisor(operation, input, other)


def check_elements(operation: str, x, holds, rule: str, fix: str, whole: bool = False) -> None:
    """Raise `OpValueError` unless a condition holds for all numbers of a tensor on the CPU.

    Args:
        operation: the call.
        x: the tensor; it is not checked on other devices.
        holds: takes an array and returns whether it holds.
        rule: the rule.
        fix: the line of code that mends it.
        whole: whether the condition is one of rows or places: `holds` takes the whole tensor, not the ranks' parts.
    """
    for part in [bounds.value_on_cpu(x)] if whole else bounds.parts_on_cpu(x):
        if part is not None and part.size and not holds(part):
            raise OpValueError(operation, f"{describe(x)}, {part.min()} to {part.max()}", rule, fix)


def _is_probability(part: np.ndarray) -> bool:
    return bool(part.min() >= 0 and part.max() <= 1)  # neither holds of NaN


def check_probabilities(operation: str, input, target) -> None:
    """Raise `OpValueError` unless inputs and targets on the CPU are between 0 and 1."""
    fix = "torch.sigmoid(x), or binary_cross_entropy_with_logits(x, target)"
    for name, x in (("input", input), ("target", target)):
        rule = f"all elements of {name} should be between 0 and 1"
        check_elements(
            _call(operation, "target"), x, _is_probability, rule, fix if name == "input" else "target.clamp(0, 1)"
        )


def check_observation_weights(operation: str, fweights, aweights) -> None:
    """Raise `OpValueError` if a weight of an observation, if on the CPU, is negative."""
    for name, x in (("fweights", fweights), ("aweights", aweights)):
        if x is not None:
            rule = f"cov(): {name} cannot be negative"
            check_elements(f"{operation}(x, {name}=...)", x, lambda part: bool(part.min() >= 0), rule, f"{name}.abs()")


def check_class_weights(operation: str, input, target, weight, ignore_index) -> None:
    """Raise unless every target is a class, or ignored, and the weights are one per class."""
    if isinstance(weight, Tensor) and isinstance(input, Tensor) and input.ndim:
        count = input.shape[1 if input.ndim > 1 else 0]
        if tuple(weight.shape) != (count,):
            rule = f"weight tensor should be defined either for all {count} classes or no classes"
            raise OpError(
                _call(operation, "target", "weight"), f"weight {describe(weight)}", rule, "one weight per class"
            )
    check_class_targets(operation, input, target, ignore_index)


def check_multi_margin_loss(operation: str, input, target, weight, reduction) -> None:
    """Raise unless every target is a class, weights are one per class, and the reduction exists."""
    if reduction not in ("mean", "sum", "none"):
        rule = f"{reduction} is not a valid value for reduction"
        raise OpValueError(f"{operation}(reduction={reduction!r})", repr(reduction), rule, "reduction='mean'")
    if isinstance(weight, Tensor):
        if weight.ndim != 1:
            raise OpValueError(
                f"{operation}(weight=...)", describe(weight), "weight must be one-dimensional", "weight[0]"
            )
        if weight.shape[0] != input.shape[-1]:
            rule = f"inconsistent weight size, expected {input.shape[-1]} but got {weight.shape[0]}"
            raise OpError(f"{operation}(weight=...)", describe(weight), rule, "one weight per class")
    if isinstance(target, Tensor) and not target.dtype.is_floating_point:
        check_rows(f"{operation}(input, target)", target, input, 1 if input.ndim > 1 else 0, None)


def check_multilabel_targets(operation: str, input, target) -> None:
    """Raise `OpValueError` unless every number of a list of labels is a class, or the -1 that ends it."""
    if isinstance(input, Tensor):
        count = input.shape[-1] if input.ndim else 1
        rule = f"target is out of range: every label is in [0, {count}), and -1 ends a list"
        holds = lambda part: bool(part.min() >= -1 and part.max() < count)  # noqa: E731
        check_elements(_call(operation, "target"), target, holds, rule, f"target.clamp(-1, {count - 1})")


# ------------------------------------------------------------------------------------------------------------ options


def check_tolerances(operation: str, rtol, atol) -> None:
    """Raise `OpValueError` for a negative tolerance."""
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            rule = f"{name} must be greater than or equal to zero, but got {value}"
            raise OpValueError(_call(operation, "y", f"{name}={value}"), f"{name}={value}", rule, f"{name}={-value}")


def check_margin(operation: str, margin) -> None:
    """Raise `OpValueError` unless a margin is above 0."""
    if not margin > 0:
        rule = f"margin must be greater than 0, got {margin}"
        raise OpValueError(f"{operation}(...)", f"margin={margin}", rule, "margin=1.0")


def check_lambda(operation: str, lambd) -> None:
    """Raise `OpValueError` if a threshold is negative."""
    if lambd < 0:
        rule = f"lambda must be greater or equal to 0, but found to be {lambd}"
        raise OpValueError(_call(operation, f"lambd={lambd}"), f"lambd={lambd}", rule, f"lambd={-lambd}")


def check_dims_given(operation: str, dims) -> None:
    """Raise `OpTypeError` unless a dim is named."""
    if not dims:
        raise OpTypeError(f"{operation}(x)", "no dims", "dims is a required argument", f"{operation}(x, (0,))")


def check_signed_index(operation: str, input, dim, index) -> None:
    """Raise `OpBoundsError` unless every number of an index names a place in a dim, from either end."""
    check_dim(_call(operation, dim, "index"), index, input, int(dim), negative=True)


def check_dim_or_flat_index(operation: str, input, indices, dim) -> None:
    """Raise `OpBoundsError` unless every number names a place in a dim from either end, or in the flattened tensor."""
    if dim is None:
        check_size(_call(operation, "indices"), indices, input.shape.numel(), 0)
    else:
        check_dim(_call(operation, "indices", dim), indices, input, int(dim), negative=True)


def check_nd_index(operation: str, input, index) -> None:
    """Raise `OpBoundsError` unless every row of an index names a place in the first dims of a tensor."""
    check_tuples(_call(operation, "index"), index, tuple(input.shape))


def check_nd_indices(operation: str, tensor, indices) -> None:
    """Raise `OpBoundsError` unless every row of indices names a place in the first dims of a tensor."""
    check_tuples(_call(operation, "indices", "updates"), indices, tuple(tensor.shape))


def check_nd_index_in_shape(operation: str, index, shape) -> None:
    """Raise `OpBoundsError` unless every row of an index names a place in the first dims of a shape."""
    check_tuples(f"{operation}(index, update, shape)", index, tuple(shape))


def check_masked_source(operation: str, input, mask, source) -> None:
    """Raise `OpError` if a mask on the CPU, broadcast to the tensor, takes more elements than there are."""
    own = tuple(input.shape)
    shape = own if operation.startswith("x.") else np.broadcast_shapes(own, mask.shape)
    operation = _call(operation, "mask", "source")
    repeats = math.prod(shape) // max(mask.shape.numel(), 1)
    chosen = bounds.value_on_cpu(mask)
    taken = 0 if chosen is None else repeats * int(np.count_nonzero(chosen))
    if taken > source.shape.numel():
        raise OpError(
            operation,
            f"a source of {source.shape.numel()} elements, a mask that holds at {taken} places",
            "the source has at least one element for every place",
            "make the source larger, or masked_fill to write one number",
        )


def check_nonnegative_size(operation: str, size) -> None:
    """Raise `OpError` if a size is negative."""
    if size < 0:
        rule = f"{operation}: 'size' must be an non-negative integer"
        raise OpError(f"{operation}(size={size})", str(size), rule, "size=1")


def check_class_targets(operation: str, input, target, ignore_index) -> None:
    """Raise `OpIndexError` unless every target is a class of logits (C,) or (N, C, ...), or is `ignore_index`."""
    dim = 1 if isinstance(input, Tensor) and input.ndim > 1 else 0
    check_rows(f"{operation}(input, target)", target, input, dim, ignore_index)


def check_linear_class_targets(operation: str, linear_weight, target, ignore_index) -> None:
    """Raise `OpIndexError` unless every target is a row of weights (C, D), or is `ignore_index`."""
    ignored = -100 if ignore_index is None else ignore_index
    check_rows(f"{operation}(input, linear_weight, target)", target, linear_weight, 0, ignored)


def check_depth(operation: str, logits, depth) -> None:
    """Raise `OpError` unless OneFlow's `depth` is the number of classes, where it is given."""
    if depth is not None and depth != logits.shape[-1]:
        seen, rule = f"logits with {logits.shape[-1]} classes", "depth is the number of classes"
        raise OpError(f"{operation}(depth={depth})", seen, rule, "leave depth out")


def check_affine_maps(operation: str, theta) -> None:
    """Raise `OpValueError` unless affine maps are of floats."""
    if not theta.dtype.is_floating_point:
        rule = "Expected theta to have floating point type"
        raise OpValueError(f"{operation}(theta, size)", f"theta of {theta.dtype.name}", rule, "theta.float()")


def check_compute_mode(operation: str, compute_mode) -> None:
    """Raise `OpValueError` for a way to compute distances that PyTorch has not; all that it has give the same here."""
    known = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in (None, 0, 1, 2, *known):
        rule = f"{compute_mode} is not a valid value for compute_mode"
        raise OpValueError(f"{operation}(compute_mode={compute_mode!r})", repr(compute_mode), rule, "leave it out")


def check_pivots(operation: str, LU, pivots) -> None:
    """Raise `OpValueError` unless pivots that are at hand name rows, counted from 1."""
    if isinstance(LU, Tensor) and LU.ndim > 1:
        most = LU.shape[-2]
        rule = f"Pivots given to {operation} must all be between 1 and LU.size(-2) = {most}"
        holds = lambda part: bool(part.min() >= 1 and part.max() <= most)  # noqa: E731
        check_elements(f"{operation}(LU, pivots)", pivots, holds, rule, "the LU and pivots of one lu_factor(A)")


def check_unpacked_pivots(operation: str, LU_data, LU_pivots, unpack_pivots) -> None:
    """Raise `OpValueError` unless pivots that are at hand name rows, counted from 1."""
    if unpack_pivots:
        check_pivots(operation, LU_data, LU_pivots)


def check_pivoting(operation: str, pivot) -> None:
    """Raise `OpError` for an LU factorisation without pivoting."""
    if not pivot:
        rule = "LU without pivoting is not implemented on the CPU, and not here"
        raise OpError(f"{operation}(A, pivot=False)", "pivot=False", rule, "pivot=True")


def resolve_reduction(size_average: bool | str | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction of the old options, or `reduction` if neither is given.

    OneFlow lacks the old options, so in a call in its order the reduction itself is in the place of the first one.
    """
    if size_average is None and reduce is None:
        return reduction
    if isinstance(size_average, str):
        return size_average
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def check_finite_matrices(operation: str, A) -> None:
    """Raise `LinAlgError` for a matrix with NaN or inf, which has no eigenvalues."""
    _check_matrices(operation, A, np.isfinite, "input tensor should not contain infs or NaNs")


def check_matrices_without_nan(operation: str, A) -> None:
    """Raise `LinAlgError` for a matrix with NaN, which has no singular values."""
    rule = "The algorithm failed to converge because the input matrix contained non-finite values"
    _check_matrices(operation, A, lambda part: ~np.isnan(part), rule)


def check_matrix_norm(operation: str, A, ord) -> None:
    """Raise `LinAlgError` for a matrix with NaN if the norm is one of singular values."""
    if ord in (2, -2, "nuc"):
        check_matrices_without_nan(operation, A)


def check_condition_number(operation: str, A, p) -> None:
    """Raise `LinAlgError` for a matrix with NaN if the norm is one of singular values."""
    check_matrix_norm(operation, A, 2 if p is None else p)


def _check_matrices(operation: str, matrices, legal, rule: str) -> None:
    parts = bounds.parts_on_cpu(matrices)
    for part in parts:
        if part.ndim >= 2 and part.dtype.kind in "fc" and not (fine := legal(part)).all():
            where = first_in_batch(~fine.all((-2, -1)), parts)
            raise LinAlgError(f"{operation}(A)", describe(matrices), f"{where}{rule}", "A.nan_to_num()")
