"""Error texts for local shapes that do not form a global tensor: unequal dims, or unbalanced rows.

split(0) of (4, 8) and (4, 9)   all dims but 0 must be equal on all ranks: dim 1 is 8 on rank 0, 9 on rank 1
split(0) of (4, 8) and (5, 8)   rank 0 needs 5 rows, rank 1 needs 4 rows
"""

from __future__ import annotations

from collections.abc import Sequence

from sbpjax._core.runtime.processes import by_value
from sbpjax._core.runtime.ranks_text import ranks_text

from . import algebra

Shapes = dict[int, tuple[int, ...]]


def find_shape_mismatch(shapes: Shapes, expected: Shapes, codes: Sequence[int]) -> tuple[str, str]:
    """Return rule and fix of the error.

    Args:
        shapes: those of the parts by rank, of one number of dims.
        expected: the shapes of balanced parts of the same total; they differ.
        codes: the nd-sbp that the tensor was to have.
    """
    split = sorted({code for code in codes if code >= 0})
    for dim in range(len(next(iter(shapes.values())))):
        sizes = by_value({rank: shape[dim] for rank, shape in shapes.items()})
        if dim not in split and len(sizes) > 1:
            found = ", ".join(f"{size} on {_name_ranks(ranks)}" for size, ranks in sizes.items())
            return _unequal_dims_rule(f"equal on all ranks: dim {dim} is {found}", split, codes)
    dim = next(d for d in split if any(shapes[rank][d] != expected[rank][d] for rank in shapes))
    unit = "rows" if dim == 0 else f"elements along dim {dim}"
    needs = ", ".join(f"{_name_ranks([rank])} needs {shape[dim]} {unit}" for rank, shape in expected.items())
    has = ", ".join(f"{_name_ranks([rank])} has {shape[dim]}" for rank, shape in shapes.items())
    rule = f"parts are balanced, the first ranks have one more: {needs}; {has}"
    return rule, "leave the last, uneven batch out (DataLoader(..., drop_last=True)), or pad the parts"


def _unequal_dims_rule(equal: str, split: list[int], codes: Sequence[int]) -> tuple[str, str]:
    if split:
        rule = f"all dims but {' and '.join(map(str, split))} must be {equal}"
        return rule, "pad or cut the parts to one size there, or split along the dim in which they differ"
    rule = f"where no dim is split ({algebra.nd_name(codes)}), all dims must be {equal}"
    return rule, "build it alike on all ranks; the parts of one tensor are split: sbp=sbpjax.sbp.split(0)"


def _name_ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks_text(ranks)}"
