"""Abstract arrays (shape, dtype, sharding) of tensors on absent devices or of models too big to build.

A 70B model in float32 is 280 GB; the memory of its step on 512 chips follows from shapes, dtypes and layouts alone. An
`Abstract` replaces the physical `jax.Array` of a tensor: shape, dtype and sharding, and no element. JAX accepts it for
tracing and lowering; ops on it are planned as usual, and give abstract results.
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
    """Return the abstract array of a global tensor."""
    found = layout.__dict__.get("abstract")
    if found is None:
        found = layout.__dict__["abstract"] = Abstract(layout.physical_shape, layout.dtype, sharding=layout.sharding)
    return found


def of_aval(aval) -> Abstract:
    """Return the abstract array of a local tensor."""
    return Abstract(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def any_abstract(arrays) -> bool:
    """Return whether one of the arrays is abstract."""
    return Abstract in map(type, arrays)


def no_data(operation: str, seen: str) -> AbstractError:
    """Return the error for an op that needs the elements of an abstract tensor."""
    return AbstractError(
        operation,
        seen,
        "an abstract tensor has shape, dtype, placement and sbp, and no elements",
        "make it outside sbpjax.abstract() and device='meta', on devices of this machine",
    )


def absent(operation: str, seen: str, placement) -> AbstractError:
    """Return the error for data that would have to go to absent devices."""
    return AbstractError(
        operation,
        seen,
        f"{placement!r} is not there: programs for it are compiled and sized, nothing runs or is stored on it",
        'drop the data first, x.to("meta") or module.to("meta"), or run on devices of this machine',
    )
