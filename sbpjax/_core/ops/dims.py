"""Dim arguments (negative, one or several, None for all), shape rules, and the errors of ops.

Worked case: on a tensor of 3 dims, `one(-1, 3)` is 2, `several(None, 3)` is (0, 1, 2) and `several((0, -1), 3)` is
(0, 2).
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from jax import lax

from sbpjax.errors import (
    OpAssertionError,
    OpBoundsError,
    OpError,
    OpIndexError,
    OpNotSupportedError,
    OpTypeError,
    OpValueError,
    count_text,
)

_KINDS = {
    "shape": OpError,
    "type": OpTypeError,
    "index": OpIndexError,
    "value": OpValueError,
    "bounds": OpBoundsError,
    "unsupported": OpNotSupportedError,
    "assertion": OpAssertionError,
}


def fail(kind: str, operation: str, seen: str, rule: str, fix: str) -> NoReturn:
    """Raise the op error of ``kind``, a key of ``_KINDS``, with its four parts."""
    raise _KINDS[kind](operation, seen, rule, fix)


def same_dtype(op: str, *arrays) -> None:
    """Raise unless all arrays (None is skipped) have one dtype."""
    dtypes = [str(x.dtype) for x in arrays if x is not None]
    if len(set(dtypes)) > 1:
        fail("type", op, f"dtypes {', '.join(dtypes)}", "all inputs have the same dtype", "cast with x.to(y.dtype)")


def no_complex(x, op: str, kind: str = "unsupported") -> None:
    """Raise if an array is complex, where only real numbers have a meaning."""
    if np.dtype(x.dtype).kind == "c":
        fail(kind, f"{op}(x)", f"x of dtype {x.dtype}", f"{op} is not supported for complex inputs", f"{op}(x.real)")


def one(dim: int, ndim: int, op: str) -> int:
    """Return ``dim`` counted from the front; a 0-d tensor counts as one of 1 dim."""
    size = max(ndim, 1)
    if not hasattr(dim, "__index__"):
        fail("type", f"{op}(dim={dim!r})", f"dim of type {type(dim).__name__}", "a dim is an integer", f"{op}(dim=0)")
    if not -size <= dim < size:
        fail(
            "index",
            f"{op}(dim={dim})",
            f"a tensor of {count_text(ndim, 'dim')}",
            f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {dim})",
            f"use dim={min(max(dim, -size), size - 1)}, or unsqueeze the tensor first",
        )
    return int(dim) % size


def shape_text(shape) -> str:
    """Return a shape as messages of OneFlow and PyTorch's users compare it: ``(4,5)``, ``(3,)``."""
    return str(tuple(shape)).replace(" ", "")


def broadcast_rule(shapes) -> str | None:
    """Return the rule that shapes break which do not broadcast; None if they do."""
    ndim = max(map(len, shapes))
    full = [(1,) * (ndim - len(s)) + tuple(s) for s in shapes]
    for dim in range(ndim):
        sizes = [s[dim] for s in full if s[dim] != 1]
        other = next((n for n in sizes if n != sizes[0]), None)
        if other is not None:
            sizes = f"The size of tensor a ({sizes[0]}) must match the size of tensor b ({other})"
            return f"{sizes} at non-singleton dimension {dim}"
    return None


def expand_rule(own: tuple[int, ...], sizes: tuple) -> str:
    """Return the rule that the sizes of an expansion break."""
    offset = len(sizes) - len(own)
    if offset < 0:
        given = f"the number of sizes provided ({len(sizes)}) must be greater or equal to the number of dimensions"
        return f"expand(tensor{{{shape_text(own)}}}, size={len(own)}): {given} in the tensor ({len(own)})"
    for dim, size in enumerate(sizes):
        if dim < offset and size < 0:
            return f"The expanded size of the tensor ({size}) isn't allowed in a leading, non-existing dimension {dim}"
        if dim >= offset and size != -1 and own[dim - offset] not in (1, size):
            sizes_of = f"The expanded size of the tensor ({size}) must match the existing size ({own[dim - offset]})"
            shapes = f"Target sizes: {shape_text(sizes)}. Tensor sizes: {shape_text(own)}"
            return f"{sizes_of} at non-singleton dimension {dim}. {shapes}"
    return "a size is -1, which keeps the tensor's own, or not negative"


def several(dim, ndim: int, op: str) -> tuple[int, ...]:
    """Return one or more dims counted from the front, without repeats; None or () means all."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    given = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    found = tuple(one(d, ndim, op) for d in given)
    if len(set(found)) < len(found):
        fail(
            "value",
            f"{op}(dim={given})",
            f"a tensor of {count_text(ndim, 'dim')}",
            f"The dim {next(d for d in found if found.count(d) > 1)} appears multiple times in the list of dims",
            f"dim={tuple(set(found))}",
        )
    return found if ndim else ()


def restore_dims(x, axes: tuple[int, ...], keepdim: bool):
    """Put the reduced ``axes`` back with size 1 if ``keepdim``."""
    if not keepdim or not axes:
        return x
    shape = list(np.shape(x))
    for axis in sorted(axes):
        shape.insert(axis, 1)
    kept = [d for d in range(len(shape)) if d not in axes]
    return lax.broadcast_in_dim(x, tuple(shape), tuple(kept))
