"""TPU memory layout in tiles of 8 rows by 128 lanes: the bytes of arrays, and the shards of a reduce-scatter.

A table of ``(500,000, 64)`` float32 would fill half of each tile, 256 MB; transposed, with its rows along the lanes, it
takes 128 MB, which the compiler chooses.

The sum of a ``[4096, 8192]`` over 64 ranks, cut along its columns, is 64 shards of ``[4096, 128]``. They are sent as
``[64, 4096, 128]``: each in one piece, the ranks outermost. Activations ``[2, 2048, 4096]`` cut along the tokens stay
as they are: their shards are rows of whole tiles already, and putting the ranks outermost would take a copy.

A table ``[4,000,000, 64]`` is stored transposed, its rows along the lanes. Cut into eighths of 500,000 rows, which end
within a tile, its shards would be brought into one piece by a loop of 115 ms; so such a sum is an all-reduce of the
whole in place, cut afterwards. Cut into columns, eight of them each, the shards are whole tiles: a reduce-scatter.

The compiler (libtpu 0.0.42) scatters a sum only in whole tiles, two
per rank or more; a smaller sum it makes an all-reduce, and cuts the result. The gradient of a layer norm's weight,
``f32[4096]`` over eight ranks, has shards of 512 numbers: 28 kB on the interconnect where the reduce-scatter of the
plan has 14.
"""

from __future__ import annotations

import math

LANES, SUBLANES = 128, 8
BF16_BYTES = 2  # of a number that products round
_LEAST_TILES = 2  # per rank of a reduce-scatter


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


def keeps_shape(ndim: int, dim: int) -> bool:
    """Return whether an array that is cut along a dim is sent as it is: that dim is one of rows, and not the first."""
    return 0 < dim == ndim - 2


def has_partial_tiles(shape: tuple[int, ...], itemsize: int, size: int, dim: int) -> bool:
    """Return whether shards of a transposed block are not whole tiles, so that it is summed whole, in place.

    Args:
        shape: of the block, to be cut along ``dim`` over ``size`` ranks.
        itemsize: bytes of one element.
        size: ranks.
        dim: the dim.
    """
    if len(shape) < 2 or dim < len(shape) - 2 or not is_transposed(shape, itemsize):
        return False
    return shape[dim] % (size * (SUBLANES if dim == len(shape) - 1 else LANES)) > 0


def sent_shape(shard: tuple[int, ...]) -> tuple[int, int]:
    """Return the shape in which a shard is sent: rows, of 128 numbers where its own are too few for a tile."""
    rows, last = math.prod(shard[:-1]), shard[-1]
    count = rows * last
    return (count // LANES, LANES) if rows < SUBLANES and count and count % LANES == 0 else (rows, last)


def lowers_to_all_reduce(shard: tuple[int, ...], dim: int) -> bool:
    """Return whether the TPU compiler makes an all-reduce of a reduce-scatter with such shards, cut along ``dim``."""
    *outer, rows, last = shard if keeps_shape(len(shard), dim) else sent_shape(shard)
    return rows < SUBLANES or math.prod(outer) * -(-rows // SUBLANES) * -(-last // LANES) < _LEAST_TILES
