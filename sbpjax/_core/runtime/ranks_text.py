"""Text form of ranks: short lists as they are, long ones as ranges.

    [0, 1, 2, 3]                  [0, 1, 2, 3]
    0 … 63                        range(64)
    0 … 63 in 8 rows              np.arange(64).reshape(8, 8)
    0 … 63 in 8 columns           [range(0, 64, 8), range(1, 64, 8), …]
    0 … 31 and 40 … 63            [*range(32), *range(40, 64)]

The text of a grid is Python, with NumPy as ``np``, and `sbpjax.placement` accepts its value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_LONG = 16  # a list of more ranks prints as ranges
_RUN = 4  # fewer ranks in a row are written out


def ranks_text(ranks: Any) -> str:
    """Return the text of ranks, a sequence or an array of any number of dims."""
    grid = np.asarray(ranks)
    if grid.size <= _LONG:
        return str(grid.tolist())
    flat = grid.reshape(-1)
    if grid.ndim > 1 and (step := _step(flat)) is not None:
        return f"np.arange({_bounds(flat, step)}).reshape{grid.shape}"
    return _rows(grid)


def _rows(grid: np.ndarray) -> str:
    if grid.ndim > 1:
        return f"[{', '.join(map(_rows, grid))}]"
    step = _step(grid)
    return f"[{', '.join(_runs(grid))}]" if step is None or len(grid) < _RUN else f"range({_bounds(grid, step)})"


def _runs(row: np.ndarray) -> list[str]:
    """Return the parts of a row: ``*range(…)`` for those that are in steps of one size, the others one by one."""
    found, at = [], 0
    while at < len(row):
        end = at + 2
        while end < len(row) and row[end] - row[end - 1] == row[at + 1] - row[at]:
            end += 1
        run = row[at:end]
        if len(run) < _RUN:
            run = row[at : at + 1]
            found.append(str(int(run[0])))
        else:
            found.append(f"*range({_bounds(run, int(run[1] - run[0]))})")
        at += len(run)
    return found


def _step(row: np.ndarray) -> int | None:
    """Return the common difference of successive ranks, None if there is none."""
    steps = np.unique(np.diff(row))
    return int(steps[0]) if len(steps) == 1 else None


def _bounds(row: np.ndarray, step: int) -> str:
    """Return the arguments of the range that is a row."""
    start, last = int(row[0]), int(row[-1])
    end = last + (1 if step > 0 else -1)
    if step != 1:
        return f"{start}, {end}, {step}"
    return f"{start}, {end}" if start else f"{end}"
