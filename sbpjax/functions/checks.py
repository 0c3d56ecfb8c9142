"""What a row's `check` looks at before the op runs; the parameters are those of the call form that it asks for."""

from __future__ import annotations

import math

import numpy as np

from sbpjax.errors import OpError, OpTypeError, OpValueError
from sbpjax.tensor import bounds
from sbpjax.tensor.bounds import check_dim, check_rows, check_size, check_tuples
from sbpjax.tensor.tensor import Tensor


def _call(asked: str, *rest) -> str:
    """Return a call as users write it: of a function ``gather(x, 0, index)``, of a method ``x.gather_(0, index)``."""
    return f"{asked}({', '.join(map(str, rest if asked.startswith('x.') else ('x', *rest)))})"


NUMBERS = frozenset((bool, int, float, complex))


def no_number(name: str, parameters: tuple[str, ...], values: tuple) -> None:
    """Raise `OpTypeError` for the first of several arguments that is a number, where a tensor is asked for."""
    place = next(i for i, value in enumerate(values) if value.__class__ in NUMBERS)
    kind = type(values[place]).__name__
    rule = f"{name}(): argument {parameters[place]!r} (position {place + 1}) must be Tensor, not {kind}"
    fix = f"{parameters[place]}=sbpjax.tensor({values[place]!r})"
    raise OpTypeError(f"{name}({', '.join(parameters)})", f"{parameters[place]}={values[place]!r}", rule, fix)


def index_in_dim(asked: str, input, dim, index) -> None:
    """Raise `OpBoundsError` unless every number of an index names a place in a dim, counted from the front."""
    check_dim(_call(asked, dim, "index"), index, input, int(dim))


def index_of_elements(asked: str, input, index) -> None:
    """Raise `OpBoundsError` unless every number of an index names an element, from either end."""
    check_size(_call(asked, "index"), index, input.shape.numel(), 0, negative=True)


def index_in_batch(asked: str, input, indices) -> None:
    """Raise `OpBoundsError` unless every number names a place in the dim behind the batch."""
    check_size(_call(asked, "indices"), indices, input.shape[indices.ndim - 1], indices.ndim - 1)


def bounds_given(asked: str, min, max) -> None:
    """Raise `OpTypeError` unless one bound is given at least."""
    if min is None and max is None:
        rule = "At least one of 'min' or 'max' must not be None"
        raise OpTypeError(f"{asked}(x)", "neither min nor max", rule, "x.clamp(min=0)")


def some_dims(asked: str, dims) -> None:
    """Raise `OpTypeError` unless a dim is named."""
    if not dims:
        raise OpTypeError(f"{asked}(x)", "no dims", "dims is a required argument", f"{asked}(x, (0,))")


def index_in_dim_from_either_end(asked: str, input, dim, index) -> None:
    """Raise `OpBoundsError` unless every number of an index names a place in a dim, from either end."""
    check_dim(_call(asked, dim, "index"), index, input, int(dim), negative=True)


def indices_along_dim(asked: str, input, indices, dim) -> None:
    """Raise `OpBoundsError` unless every number names a place in a dim from either end, or in the flattened tensor."""
    if dim is None:
        check_size(_call(asked, "indices"), indices, input.shape.numel(), 0)
    else:
        check_dim(_call(asked, "indices", dim), indices, input, int(dim), negative=True)


def index_of_tuples(asked: str, input, index) -> None:
    """Raise `OpBoundsError` unless every row of an index names a place in the first dims of a tensor."""
    check_tuples(_call(asked, "index"), index, tuple(input.shape))


def indices_of_tuples(asked: str, tensor, indices) -> None:
    """Raise `OpBoundsError` unless every row of indices names a place in the first dims of a tensor."""
    check_tuples(_call(asked, "indices", "updates"), indices, tuple(tensor.shape))


def index_of_tuples_in(asked: str, index, shape) -> None:
    """Raise `OpBoundsError` unless every row of an index names a place in the first dims of a shape."""
    check_tuples(f"{asked}(index, update, shape)", index, tuple(shape))


def enough_elements(asked: str, input, mask, source) -> None:
    """Raise `OpError` unless a mask that is at hand, broadcast to the tensor, takes no more elements than there are."""
    own = tuple(input.shape)
    shape = own if asked.startswith("x.") else np.broadcast_shapes(own, mask.shape)
    asked = _call(asked, "mask", "source")
    repeats = math.prod(shape) // max(mask.shape.numel(), 1)
    taken = repeats * sum(int(np.count_nonzero(part)) for part in bounds.parts_on_cpu(mask))
    if taken > source.shape.numel():
        raise OpError(
            asked,
            f"a source of {source.shape.numel()} elements, a mask that holds at {taken} places",
            "the source has at least one element for every place",
            "make the source larger, or masked_fill to write one number",
        )


def size_is_natural(asked: str, size) -> None:
    """Raise `OpError` if a size is negative."""
    if size < 0:
        rule = f"{asked}: 'size' must be an non-negative integer"
        raise OpError(f"{asked}(size={size})", str(size), rule, "size=1")


def class_numbers(asked: str, input, target, ignore_index) -> None:
    """Raise `OpIndexError` unless every target is a class of logits (C,) or (N, C, ...), or is `ignore_index`."""
    dim = 1 if isinstance(input, Tensor) and input.ndim > 1 else 0
    check_rows(f"{asked}(input, target)", target, input, dim, ignore_index)


def linear_class_numbers(asked: str, linear_weight, target, ignore_index) -> None:
    """Raise `OpIndexError` unless every target is a row of weights (C, D), or is `ignore_index`."""
    ignored = -100 if ignore_index is None else ignore_index
    check_rows(f"{asked}(input, linear_weight, target)", target, linear_weight, 0, ignored)


def depth_is_classes(asked: str, logits, depth) -> None:
    """Raise `OpError` unless OneFlow's `depth` is the number of classes, where it is given."""
    if depth is not None and depth != logits.shape[-1]:
        seen, rule = f"logits with {logits.shape[-1]} classes", "depth is the number of classes"
        raise OpError(f"{asked}(depth={depth})", seen, rule, "leave depth out")


def floating_maps(asked: str, theta) -> None:
    """Raise `OpValueError` unless affine maps are of floats."""
    if not theta.dtype.is_floating_point:
        rule = "Expected theta to have floating point type"
        raise OpValueError(f"{asked}(theta, size)", f"theta of {theta.dtype.name}", rule, "theta.float()")


def pivoting(asked: str, pivot) -> None:
    """Raise `OpError` for an LU factorisation without pivoting."""
    if not pivot:
        rule = "LU without pivoting is not implemented on the CPU, and not here"
        raise OpError(f"{asked}(A, pivot=False)", "pivot=False", rule, "pivot=True")


def reduced_by(size_average: bool | str | None, reduce: bool | None, reduction: str) -> str:
    """Return the reduction that the old options ask for, or `reduction` if neither is given.

    OneFlow has not the old options, so in a call in its order the reduction itself stands where the first one does.
    """
    if size_average is None and reduce is None:
        return reduction
    if isinstance(size_average, str):
        return size_average
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"
