"""Dims as users write them (negative, one or several, None for all) and the errors of ops, in one place.

Worked case: on a tensor of 3 dims, `one(-1, 3)` is 2, `several(None, 3)` is (0, 1, 2) and `several((0, -1), 3)` is
(0, 2).
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from jax import lax

from sbpjax.errors import (
    OpBoundsError,
    OpError,
    OpIndexError,
    OpNotSupportedError,
    OpTypeError,
    OpValueError,
)

_KINDS = {
    "shape": OpError,
    "type": OpTypeError,
    "index": OpIndexError,
    "value": OpValueError,
    "bounds": OpBoundsError,
    "unsupported": OpNotSupportedError,
}


def fail(kind: str, asked: str, seen: str, rule: str, fix: str) -> NoReturn:
    """Raise the op error of ``kind``, a key of ``_KINDS``, with its four parts."""
    raise _KINDS[kind](asked, seen, rule, fix)


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
            f"a tensor of {ndim} dims",
            f"Dimension out of range: dim lies in [{-size}, {size - 1}], got {dim}",
            f"use dim={min(max(dim, -size), size - 1)}, or unsqueeze the tensor first",
        )
    return int(dim) % size


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
            f"a tensor of {ndim} dims",
            "a dim appears only once",
            f"dim={tuple(set(found))}",
        )
    return found if ndim else ()


def restore(x, axes: tuple[int, ...], keepdim: bool):
    """Put the reduced ``axes`` back with size 1 if ``keepdim``."""
    if not keepdim or not axes:
        return x
    shape = list(np.shape(x))
    for axis in sorted(axes):
        shape.insert(axis, 1)
    kept = [d for d in range(len(shape)) if d not in axes]
    return lax.broadcast_in_dim(x, tuple(shape), tuple(kept))
