"""Lossless casts: dtypes that hold every value of another, allowed on load without ``cast=True``.

bfloat16 goes into float32, int8 into float16; float32 into int64 or bfloat16 loses something, int64 into float32 too.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np


def is_lossless_cast(target: np.dtype, source: np.dtype) -> bool:
    """Return whether every value of ``source`` is one of ``target``."""
    if target == source:
        return True
    kinds = [_kind(source), _kind(target)]
    if None in kinds or kinds[0] > kinds[1]:  # type: ignore[operator]
        return False
    if kinds[0] == 0:
        return True
    if kinds[1] == 1:
        a, b = ml_dtypes.iinfo(source), ml_dtypes.iinfo(target)
        return b.min <= a.min and a.max <= b.max
    real = ml_dtypes.finfo(_real(target))
    if kinds[0] == 1:
        info = ml_dtypes.iinfo(source)
        return info.bits - (info.min < 0) <= real.nmant + 1 and float(info.max) <= float(real.max)
    other = ml_dtypes.finfo(_real(source))
    return other.nmant <= real.nmant and other.maxexp <= real.maxexp and other.minexp >= real.minexp


def _kind(dtype: np.dtype) -> int | None:
    """Return 0 for booleans, 1 integers, 2 real and 3 complex numbers; None for other dtypes."""
    known = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}.get(dtype.kind)
    return 2 if known is None and dtype.kind == "V" and "float" in dtype.name else known


def _real(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype
