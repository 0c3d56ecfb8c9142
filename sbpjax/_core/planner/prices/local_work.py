"""Per-device memory cost of an equation under its layouts, where dividing the whole cost misleads.

A table of ``(4,000,000, 64)`` float32 and 1.7 million ids on 8 TPU chips:

    ids split      213,000 rows of 64    0.8 ms
    columns split  1,700,000 rows of 8    48 ms
    rows split     1,700,000 rows of 64, most of them masked: 5 ms, and a result that is not divided

An eighth of the whole is the same for all three. A product whose contracted dim is split writes its whole result, too.
So equations that read and write memory are priced by the HBM traffic of one device, and a looked-up row by the unit of
a memory access: on TPU a tile of 8 rows by 128 lanes, since the compiler reads whole tiles. libtpu's compiler counts,
for 213,000 rows of float32 on v5p, in kB per row:

    width              1     16     32     64    128    256    512
    looked up        4.2     67     66    8.4    5.7     11     23
    added to a table        132    132    5.6    2.9    5.8     12

Tables of 2 to 32 columns are transposed, so that a row spans tiles. One of 64 is transposed too, as its rows would fill
half a tile. It is looked up from a copy that is not. Sums into it are made transposed, at 132 kB per row, where its
rows are whole tiles, as 4,000,000 are, and else not, as with the 500,000 above: the sums are transposed afterwards. A
table cut down to one column costs as much as narrow ones; width 1 above is a table that never had columns. Sums start
from zeros, which are written first.

The effect of each of these on plans is in `benchmarks/results/tpu_prices.md`. Only models whose memory is read in tiles
(`CostModel.tiles`) are priced so.
"""

from __future__ import annotations

import math

from sbpjax._core.programs.primitives import SCATTERS
from sbpjax.sbp.algebra import P
from sbpjax.sbp.layout import local_shape
from sbpjax.sbp.tpu_tiles import BF16_BYTES, LANES, SUBLANES, in_tiles, is_transposed_table

from .cost import READS

_LANE_BYTES = LANES * 4
_HALF_TILE = _LANE_BYTES // 2
# The number of reads or writes of a row's tiles: by a lookup, and of a single element by a sum. A row of fewer bytes
# than half a tile's spans several.
_READ, _READ_NARROW = 1.35, 16
_ADDED_ELEMENT, _ADDED_NARROW = 2, 32


def is_divided(name: str) -> bool:
    """Return whether the work of a primitive is that of the whole, divided: that of pointwise ones is."""
    return name not in READS


def local_bytes(eqn, ins, outs, sizes: tuple[int, ...]) -> float | None:
    """Return the bytes that one device reads and writes for an equation, None where the whole may be divided."""
    name = eqn.primitive.name
    if name == "gather":
        rows = _looked_up(eqn.outvars[0], outs[0], eqn.invars[1], ins[1], sizes)
        # libtpu 0.0.42 makes the copy in bfloat16 where only products read the rows, as in most models. The readers are
        # not checked; rows that are summed over ranks first (P) are read in full.
        item = eqn.invars[0].aval.dtype.itemsize
        return rows + _transposed_bytes(eqn.invars[0], ins[0], sizes, item if P in outs[0] else min(item, BF16_BYTES))
    if name in SCATTERS:
        return _row_addition_bytes(eqn, ins, outs, sizes)
    if is_divided(name):
        return None
    operands = sum(_local_bytes(v, c, sizes) for v, c in zip(eqn.invars, ins, strict=True))
    return operands + sum(_local_bytes(v, c, sizes) for v, c in zip(eqn.outvars, outs, strict=True))


def is_added_in_rows(shape: tuple[int, ...], itemsize: int) -> bool:
    """Return whether sums into a transposed table are made in one that is not, and transposed afterwards."""
    if not is_transposed_table(shape, itemsize):
        return False
    row = shape[1] * itemsize
    return row > _HALF_TILE or row == _HALF_TILE and shape[0] % LANES > 0


def _looked_up(windows, window_codes, indices, index_codes, sizes) -> float:
    """Return the bytes of rows that are looked up, and of the block that they come to."""
    held, count = _local_bytes(windows, window_codes, sizes), _count(indices, index_codes, sizes)
    if not count:
        return held
    is_narrow = _are_rows(windows, indices) and held / count < _HALF_TILE
    return held + count * _tiles(held / count) * (_READ_NARROW if is_narrow else _READ)


def _row_addition_bytes(eqn, ins, outs, sizes) -> float:
    """Return the bytes of adding rows to zeros: zeros, rows, and transposing the sums of a transposed table."""
    table, indices, updates = eqn.outvars[0], eqn.invars[1], eqn.invars[2]
    shape, item = local_shape(table.aval.shape, outs[0], sizes), table.aval.dtype.itemsize
    rows, count = _local_bytes(updates, ins[2], sizes), _count(indices, ins[1], sizes)
    row, written = rows / max(count, 1), math.prod(shape) * item
    if not _are_rows(updates, indices):
        return 2 * written + rows + count * _ADDED_ELEMENT * _tiles(row)
    if is_added_in_rows(shape, item):
        padded = in_tiles(shape, item)
        return 4 * padded + written + rows + count * in_tiles((1, row // item), item)
    if row < _HALF_TILE or is_transposed_table(shape, item):
        return written + rows + count * _ADDED_NARROW * _tiles(row)
    return written + 2 * rows


def _are_rows(windows, indices) -> bool:
    """Return whether whole rows of a table are looked up or added, not single elements."""
    return math.prod(windows.aval.shape) > math.prod(indices.aval.shape[:-1])


def _count(indices, codes, sizes) -> int:
    return math.prod(local_shape(indices.aval.shape, codes, sizes)[:-1])


def _tiles(row: float) -> int:
    """Return the bytes of the tiles that hold a row of so many bytes."""
    return SUBLANES * _LANE_BYTES * math.ceil(row / _LANE_BYTES)


def _transposed_bytes(table, codes, sizes, item: int) -> float:
    """Return the bytes of the copy, not transposed, in which rows of half a tile and more are looked up."""
    shape, full = local_shape(table.aval.shape, codes, sizes), table.aval.dtype.itemsize
    if not is_transposed_table(shape, full) or shape[1] * full < _HALF_TILE:
        return 0.0
    return math.prod(shape) * full + in_tiles(shape, item)


def _local_bytes(v, codes, sizes) -> float:
    aval = v.aval
    if not getattr(aval, "shape", ()):
        return 0.0
    return math.prod(local_shape(aval.shape, codes, sizes)) * getattr(aval.dtype, "itemsize", 4)
