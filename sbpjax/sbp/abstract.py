"""Payloads without data: what a tensor on a machine that is not there, or of a model too big to build, holds.

A 70B model in float32 is 280 GB; to ask what a step of it needs on 512 chips takes its shapes, dtypes and layouts
alone. An `Abstract` stands where the physical `jax.Array` of a tensor would: shape, dtype and sharding, and no element.
JAX takes it for tracing and lowering as it is; here ops on it are planned as ever, and give abstract results.
"""

from __future__ import annotations

import jax
from jax.core import ShapedArray

from sbpjax.errors import AbstractError

from .layout import Layout


class Abstract(jax.ShapeDtypeStruct):
    """Shape, dtype and sharding of an array that does not exist."""

    __slots__ = ()

    @property
    def aval(self) -> ShapedArray:
        """The abstract value, as arrays have it."""
        return ShapedArray(self.shape, self.dtype, weak_type=self.weak_type)

    @property
    def nbytes(self) -> int:
        """The bytes of the array, if it existed."""
        return self.size * self.dtype.itemsize


def of_layout(layout: Layout) -> Abstract:
    """Return the payload of a global tensor that has no data."""
    found = layout.__dict__.get("abstract")
    if found is None:
        found = layout.__dict__["abstract"] = Abstract(layout.physical_shape, layout.dtype, sharding=layout.sharding)
    return found


def of_aval(aval) -> Abstract:
    """Return the payload of a local tensor that has no data."""
    return Abstract(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def among(arrays) -> bool:
    """Return whether one of the payloads has no data."""
    return Abstract in map(type, arrays)


def no_data(asked: str, seen: str) -> AbstractError:
    """Return the error for an op that needs the elements of an abstract tensor."""
    return AbstractError(
        asked,
        seen,
        "an abstract tensor has shape, dtype, placement and sbp, and no elements",
        "make it outside sbpjax.abstract() and device='meta', on devices of this machine",
    )


def absent(asked: str, seen: str, placement) -> AbstractError:
    """Return the error for data that would have to go to a machine that is not there."""
    return AbstractError(
        asked,
        seen,
        f"{placement!r} is not there: programs for it are compiled and sized, nothing runs on it or lies on it",
        'drop the data first, x.to("meta") or module.to("meta"), or run on devices of this machine',
    )
