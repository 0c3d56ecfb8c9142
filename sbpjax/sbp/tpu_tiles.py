"""TPU memory layout of arrays: tiles of 8 rows by 128 lanes.

A table of ``(500,000, 64)`` float32 would fill half of each tile, 256 MB; transposed, with its rows along the lanes, it
takes 128 MB, which the compiler chooses.
"""

from __future__ import annotations

import math

LANES, SUBLANES = 128, 8
BF16_BYTES = 2  # of a number that products round


def in_tiles(shape, itemsize: int) -> int:
    """Return the bytes of an array whose last dim is along the lanes; fewer than 8 rows have smaller tiles."""
    *outer, rows, last = (1, 1, *shape)
    sublanes = SUBLANES if rows >= SUBLANES else 1 << (rows - 1).bit_length()
    return math.prod(outer) * -(-rows // sublanes) * sublanes * -(-last // LANES) * LANES * itemsize


def least_in_tiles(shape, itemsize: int) -> int:
    """Return the bytes of an array that is stored transposed if that is smaller."""
    transposed = (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 else shape
    return min(in_tiles(shape, itemsize), in_tiles(transposed, itemsize))


def is_transposed(shape, itemsize: int) -> bool:
    """Return whether the compiler stores an array transposed, since that is smaller."""
    if len(shape) < 2:
        return False
    *outer, rows, last = shape
    return in_tiles((*outer, last, rows), itemsize) < in_tiles(shape, itemsize)


def is_transposed_table(shape, itemsize: int) -> bool:
    """Return whether an array is a matrix that the compiler stores transposed."""
    return len(shape) == 2 and is_transposed(shape, itemsize)
