"""Boxing: the cheapest conversion between two nd-sbps on one placement.

From ``(S0, S0)`` to ``(B, S0)`` on a 2 × 2 placement one all-gather is not enough, because the inner cut is inside the
outer one: the path is ``(S0,S0) → (S0,B) → (B,B) → (B,S0)``, or through an all-to-all where that moves less. `path`
finds the cheapest sequence of single-axis steps by Dijkstra's algorithm over nd-sbps; eager ops, traced programs and
`to_global` all use it.

Of equally cheap paths it takes the one with fewer bytes on outer axes, whose links are slower: a sum over 2 × (2 × 4)
ranks is scattered over the inner axes, summed over the outer one, an eighth of it, and gathered.
"""

from __future__ import annotations

import functools
import heapq
import itertools

from .algebra import B, P
from .conversion_steps import Step, is_legal_step, make_step


@functools.lru_cache(maxsize=65536)
def _cheapest_paths(shape: tuple[int, ...], itemsize: int, sizes: tuple[int, ...], source: tuple[int, ...]) -> dict:
    """Return for every nd-sbp ``(price, steps)`` of its cheapest path from ``source``: by price, hops, outer bytes."""
    order = itertools.count()
    frontier: list = [(0, 0, 0, next(order), source, ())]
    found: dict = {}
    choices = (B, P, *range(len(shape)))
    while frontier:
        spent, hops, outer, _, codes, steps = heapq.heappop(frontier)
        if codes in found:
            continue
        found[codes] = (spent, steps)
        for axis in range(len(sizes)):
            for choice in choices:
                if choice == codes[axis] or not is_legal_step(codes, axis, choice):
                    continue
                after = codes[:axis] + (choice,) + codes[axis + 1 :]
                if after not in found:
                    step = make_step(shape, itemsize, sizes, codes, axis, choice)
                    # Outer axes have the slower links. A sum over all axes moves as many bytes in any order, but only
                    # a part of the tensor over the last one: so it scatters inside and sums across.
                    across = outer + step.price * (len(sizes) - 1 - axis)
                    heapq.heappush(frontier, (spent + step.price, hops + 1, across, next(order), after, (*steps, step)))
    return found


def path(
    shape: tuple[int, ...], itemsize: int, sizes: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...]
) -> tuple[Step, ...]:
    """Return the cheapest steps from ``source`` to ``target`` by bytes, number of steps, and bytes over outer axes.

    Args:
        shape: the logical shape.
        itemsize: bytes of one element.
        sizes: the placement's hierarchy.
        source: codes before.
        target: codes after.
    """
    return _cheapest_paths(shape, itemsize, sizes, source)[target][1]


def cost(
    shape: tuple[int, ...], itemsize: int, sizes: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...]
) -> int:
    """Return the price in bytes of the cheapest path; see `Step.price`."""
    return 0 if source == target else _cheapest_paths(shape, itemsize, sizes, source)[target][0]


def hops(
    shape: tuple[int, ...], itemsize: int, sizes: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...]
) -> int:
    """Return the number of steps of the cheapest path."""
    return 0 if source == target else len(_cheapest_paths(shape, itemsize, sizes, source)[target][1])


def run(here, x, shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...]):
    """Convert this rank's block ``x`` from ``source`` to ``target``, inside `shard_map`."""
    codes = source
    for step in path(shape, x.dtype.itemsize, here.sizes, source, target):
        x = here.convert(x, shape, codes, step)
        codes = codes[: step.axis] + (step.target,) + codes[step.axis + 1 :]
    return x
