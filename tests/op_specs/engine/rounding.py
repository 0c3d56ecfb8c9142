"""How far a result may be from the true one by rounding: what two ways to compute the same may differ by.

A tolerance relative to a result is no measure where summands cancel: the mean of ``[0.1, 0.2, -0.3]`` is 7e-9 or 0 by
the order of additions. How large the summands were inside an op nobody sees, but it shows in two ways. PyTorch computes
the call in float32 and in float64, from the same numbers: the difference is the error of the former. And the inputs
move by a unit in the last place, as if they had been rounded: the larger the summands, the more the result moves. The
larger of the two counts. They are taken over some neighbours of the call, since one result may be exact by chance; what
cancels in the call cancels in them. For a float64 result they count 2⁻²⁹ of that, as much finer as its rounding is.

Only what differs otherwise is asked this (`outcome.same_outcome`). What is large beside the result is a jump and no
rounding error: it counts nothing, so a kink, a tie or a constant of the dtype hides no other value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from tests.support.generate import Call, Input, walk

from .libraries import Plain

TIMES = 4  # two results, each with an error like PyTorch's, and PyTorch's seen at few places only
NEIGHBOURS = 6
FINER = {"float32": 1.0, "complex64": 1.0, "float64": 2.0**-29, "complex128": 2.0**-29}
_NARROW = {"f": (np.float32, np.float64), "c": (np.complex64, np.complex128)}
_JUMP = 2.0**-10
_NEAR, _UNITS = 2.0**-20, 16  # so much, or so many units of rounding in float32, is a neighbour's input off


def errors(run: Callable[[Call], object], call: Call, want):
    """Return how far the results of a call may differ by rounding, in the structure of the results; None if unknown.

    Args:
        run: returns the plain results of a call, or None where it fails.
        call: the call.
        want: its plain results.
    """
    if any(x.base.dtype.kind not in "fciub" or x.base.dtype == np.float16 for x in call.inputs()):
        return None  # bfloat16 and float16 are rounded once, at the end
    found = first = None
    for salt in range(NEIGHBOURS):
        narrow, wide = (run(_near(call, salt, place)) for place in (0, 1))
        if narrow is None or wide is None:
            return None
        first = first or wide
        for off in (_off(narrow, wide, 1), _off(first, wide, _UNITS)):
            found = off if found is None else _join(found, off)
    return _finer(found, want)


def _near(call: Call, salt: int, place: int) -> Call:
    """Return a neighbour of a call, computed in float32 (place 0) or in float64 (1), of the same numbers."""
    rng = np.random.default_rng(salt)

    def moved(x):
        if not isinstance(x, Input) or x.base.dtype.kind not in _NARROW:
            return x
        narrow, wide = _NARROW[x.base.dtype.kind]
        shift = 1 + _NEAR * rng.uniform(-1, 1, x.base.shape) * (salt > 0)
        with np.errstate(all="ignore"):
            return dataclasses.replace(x, base=(x.base * shift).astype(narrow).astype((narrow, wide)[place]))

    return Call(*walk((call.args, call.kwargs), moved))


def _off(narrow, wide, units: int):
    """Return the largest finite difference of each tensor, per unit of rounding, in the structure of the results."""
    if isinstance(narrow, (list, tuple)) and isinstance(wide, (list, tuple)) and len(narrow) == len(wide):
        return [_off(n, w, units) for n, w in zip(narrow, wide, strict=True)]
    if not isinstance(narrow, Plain) or not isinstance(wide, Plain) or narrow.array.shape != wide.array.shape:
        return 0.0
    if narrow.dtype not in FINER or (narrow.dtype == wide.dtype and units == 1):  # a dtype that the call names
        return 0.0
    with np.errstate(all="ignore"):
        size = np.abs(wide.array)
        off = np.abs(narrow.array.astype(np.complex128) - wide.array.astype(np.complex128))
    most, limit = (float(np.max(v, initial=0.0, where=np.isfinite(v))) for v in (off, size))
    return most / units if most <= _JUMP * max(limit, 1.0) else 0.0


def _join(a, b):
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [_join(x, y) for x, y in zip(a, b, strict=True)]
    return max(a, b) if isinstance(a, float) and isinstance(b, float) else 0.0


def _finer(found, want):
    if isinstance(found, list):
        whole = isinstance(want, (list, tuple)) and len(found) == len(want)
        return [_finer(f, w) for f, w in zip(found, want, strict=True)] if whole else 0.0
    return TIMES * found * FINER.get(want.dtype, 0.0) if isinstance(want, Plain) else 0.0
