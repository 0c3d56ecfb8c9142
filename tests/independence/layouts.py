"""The grids of ranks of these tests; layouts and laid-out arrays are those of `tests/support/layouts.py`."""

from tests.support.layouts import lay_out as _lay_out
from tests.support.layouts import random_codes as random_codes

MESHES = {"1d": [0, 1, 2, 3], "2d": [[0, 1], [2, 3]], "2x3": [[0, 1, 2], [3, 4, 5]]}


def lay_out(value, mesh, codes, rng):
    """Return ``(array, layout, logical)`` of a value under codes on one of the grids."""
    return _lay_out(value, MESHES[mesh], codes, rng)
