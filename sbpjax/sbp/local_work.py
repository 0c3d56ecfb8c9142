"""What an equation costs one device under the layouts of its operands, where dividing the whole cost misleads.

A table of ``(4,000,000, 64)`` float32 and 1.7 million ids on 8 TPU chips:

    ids split      213,000 rows of 64    0.8 ms
    columns split  1,700,000 rows of 8    48 ms
    rows split     1,700,000 rows of 64, most of them masked: 5 ms, and a result that is not divided

An eighth of the whole says the same for all three. A product whose contracted dim is split writes its whole result,
too. So equations that read and write memory are priced by the blocks that a device really touches, and a looked-up row
by what memory gives at once: on TPU a tile of 8 rows by 128 lanes, since the compiler reads whole tiles. The figures
are those of libtpu's compiler for v5p, which counts 8 kB per looked-up row of 64 to 128 float32, and 66 kB for one of
8, 16 or 32: such tables are turned. A sum into a table reads and writes the rows.

Only models whose memory is read in tiles (`CostModel.tiles`) are priced so.
"""

from __future__ import annotations

import math

from .layout import local_shape

_LANE_BYTES = 512  # 128 lanes of 4 bytes
_TILE_ROWS = 8
# A row of fewer bytes than this lies across tiles: the compiler turns the table so that its long dim is the minor one.
_NARROW_BYTES, _NARROW_FACTOR = 256, 16

_READS = ("reduce", "dot_general", "conv", "sort", "cum", "arg")


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
        return _looked_up(eqn.outvars[0], outs[0], eqn.invars[1], ins[1], sizes, 1)
    if name.startswith("scatter"):
        written = _held(eqn.outvars[0], outs[0], sizes)
        return written + _looked_up(eqn.invars[2], ins[2], eqn.invars[1], ins[1], sizes, 2)
    if not name.startswith(_READS):
        return None
    operands = sum(_held(v, c, sizes) for v, c in zip(eqn.invars, ins, strict=True))
    return operands + sum(_held(v, c, sizes) for v, c in zip(eqn.outvars, outs, strict=True))


def _looked_up(windows, window_codes, indices, index_codes, sizes, times: int) -> float:
    """Return the bytes of rows that are looked up, ``times`` for each (a sum is read and written)."""
    held = _held(windows, window_codes, sizes)
    count = math.prod(local_shape(indices.aval.shape, index_codes, sizes)[:-1])
    if not count:
        return held
    row = held / count
    touched = _TILE_ROWS * _LANE_BYTES * math.ceil(row / _LANE_BYTES)
    if row < _NARROW_BYTES:
        touched *= _NARROW_FACTOR
    return held + times * count * touched


def _held(v, codes, sizes) -> float:
    aval = v.aval
    if not getattr(aval, "shape", ()):
        return 0.0
    return math.prod(local_shape(aval.shape, codes, sizes)) * getattr(aval.dtype, "itemsize", 4)
