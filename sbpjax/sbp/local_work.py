"""What an equation costs one device under the layouts of its operands, where dividing the whole cost misleads.

A table of ``(4,000,000, 64)`` float32 and 1.7 million ids on 8 TPU chips:

    ids split      213,000 rows of 64    0.8 ms
    columns split  1,700,000 rows of 8    48 ms
    rows split     1,700,000 rows of 64, most of them masked: 5 ms, and a result that is not divided

An eighth of the whole says the same for all three. A product whose contracted dim is split writes its whole result,
too. So equations that read and write memory are priced by the blocks that a device really touches, and a looked-up row
by what memory gives at once: on TPU a tile of 8 rows by 128 lanes, since the compiler reads whole tiles. libtpu's
compiler counts, for 213,000 rows of float32 on v5p, in kB per row:

    width              1     16     32     64    128    256    512
    looked up        4.2     67     66    8.4    5.7     11     23
    added to a table        132    132    5.6    2.9    5.8     12

Tables of 2 to 32 columns are turned, so that a row lies across tiles. In a training step a table of 64 is turned too,
as its rows would fill half a tile: it is looked up from a copy that is not, and added to at 213 kB per row (of wide &
deep's step, with 27,000, 53,000, and 213,000 rows per device, 2.5, 5 and 20 ms). A table cut down to one column is as
dear as that (35 ms on 64 chips); width 1 above is a table that never had columns. What is added to are zeros, which are
written first; few rows cost no less than reading and writing the table once.

Only models whose memory is read in tiles (`CostModel.tiles`) are priced so.
"""

from __future__ import annotations

import math

from .layout import local_shape
from .tiles import LANES, SUBLANES, in_tiles, is_turned

_LANE_BYTES = LANES * 4
# How many times a row's tiles are touched: by a lookup, and by a sum, whose rows are sorted first.
_READ, _ADDED = 1.35, 0.7
# A row of fewer bytes than this lies across so many tiles; single elements of the whole do not.
_READ_NARROW, _ADDED_NARROW = (256, 16), (512, 52)

_READS = ("reduce", "dot_general", "conv_general", "sort", "cum", "arg")


def is_divided(name: str) -> bool:
    """Return whether the work of a primitive is that of the whole, divided: that of pointwise ones is."""
    return not name.startswith((*_READS, "gather", "scatter"))


def local_bytes(eqn, ins, outs, sizes: tuple[int, ...]) -> float | None:
    """Return what one device reads and writes for an equation, None where the whole may be divided.

    Args:
        eqn: a flat equation.
        ins: the nd-sbp of each operand.
        outs: the nd-sbp of each result.
        sizes: the sizes of the axes that these speak of.
    """
    name = eqn.primitive.name
    if name == "gather":
        rows = _looked_up(eqn.outvars[0], outs[0], eqn.invars[1], ins[1], sizes, _READ, _READ_NARROW)
        return rows + _turned(eqn.invars[0], ins[0], sizes)
    if name.startswith("scatter"):
        written = _held(eqn.outvars[0], outs[0], sizes)
        rows = _looked_up(eqn.invars[2], ins[2], eqn.invars[1], ins[1], sizes, _ADDED, _ADDED_NARROW)
        return written + max(2 * written, rows)
    if is_divided(name):
        return None
    operands = sum(_held(v, c, sizes) for v, c in zip(eqn.invars, ins, strict=True))
    return operands + sum(_held(v, c, sizes) for v, c in zip(eqn.outvars, outs, strict=True))


def _looked_up(windows, window_codes, indices, index_codes, sizes, times: float, narrow: tuple[int, int]) -> float:
    """Return the bytes of rows that are looked up, and of the block that they come to."""
    held = _held(windows, window_codes, sizes)
    count = math.prod(local_shape(indices.aval.shape, index_codes, sizes)[:-1])
    if not count:
        return held
    row = held / count
    tiles = SUBLANES * _LANE_BYTES * math.ceil(row / _LANE_BYTES)
    are_rows = math.prod(windows.aval.shape) > math.prod(indices.aval.shape[:-1])
    return held + count * tiles * (narrow[1] if are_rows and row < narrow[0] else times)


def _turned(table, codes, sizes) -> float:
    """Return the bytes of the copy from which a table's rows are looked up: half a tile's width and more is turned."""
    shape, item = local_shape(table.aval.shape, codes, sizes), table.aval.dtype.itemsize
    if len(shape) != 2 or shape[1] * item < _READ_NARROW[0] or not is_turned(shape, item):
        return 0.0
    return math.prod(shape) * item + in_tiles(shape, item)


def _held(v, codes, sizes) -> float:
    aval = v.aval
    if not getattr(aval, "shape", ()):
        return 0.0
    return math.prod(local_shape(aval.shape, codes, sizes)) * getattr(aval.dtype, "itemsize", 4)
