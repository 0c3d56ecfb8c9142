"""`torch.nn.modules.utils`: a number as a tuple."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat


def _ntuple(n: int, name: str = "parse"):
    def parse(x):
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[int], n: int) -> tuple[int, ...]:
    """Return each element ``n`` times, last one first."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict, prefix: str) -> None:
    """Take a prefix off the names of a state, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)


def _list_with_default(out_size: Sequence, defaults: Sequence[int]) -> Sequence:
    """Return the sizes with None replaced by the last of the defaults; an int as it is."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    behind = defaults[-len(out_size) :]
    return [d if size is None else size for size, d in zip(out_size, behind, strict=True)]
