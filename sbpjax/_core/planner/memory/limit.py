"""Memory-limited planning: finds the fastest plan whose peak memory fits.

A step of Adam on a 64 MB weight holds 192 MB of state on every rank of a data-parallel run, and 24 MB if split over 8.
Between them are plans that split a part. Live bytes get a price, which is raised until the cheapest plan just fits:
that plan is the fastest one for its memory. Plans between two prices are found by a row of the linear program that
bounds its memory terms. The real memory of a plan is counted by `_core.planner.memory.liveness`: inputs, and at the
peak saved activations, gathered copies and gradients.

If the plan at a price beyond all speed does not fit, no plan known to the planner does, and the error names the memory
of that plan.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sbpjax._core.jax_private import Literal, Var
from sbpjax._core.planner.prices.cost import PRESETS, CostModel
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax.errors import OutOfMemoryError
from sbpjax.sbp.layout import local_shape
from sbpjax.sbp.topology import kind_of

from .cpu_liveness import spans_on

# Prices, as multiples of the time to move a byte: from negligible to above all speed.
_LOWEST, _HIGHEST = 1.0 / 64, 1e6
_TRIES, _ROW_TRIES = 5, 2
# A plan made for one peak may peak elsewhere; the search stops after so many peaks.
_LESSONS = 3


def capacity_of(placement: Any) -> int | None:
    """Return the bytes of memory of one device of a placement; None if unknown, or of a CPU."""
    # A CPU's memory is shared by all ranks of the machine and by everything else.
    if placement is None or placement.type == "cpu":
        return None
    if placement.topology_name is not None:
        kind = kind_of(placement.topology_name)
        preset = PRESETS.get("v5e" if kind == "v5litepod" else kind)
        return None if preset is None else int(preset.memory_bytes)
    stats = placement.devices.flat[0].memory_stats() or {}
    return stats.get("bytes_limit")


def peak_bytes(plan: Plan, out_pins: Sequence, device: str = "") -> int:
    """Return the peak memory of one device under a plan: its inputs, new results, and live values between.

    Args:
        plan: the plan.
        out_pins: its pins. An output pinned to the layout of an input of the same shape is written in place of it, like
            the new value of a parameter.
        device: the type of the devices, of which XLA:CPU holds more.
    """
    program = plan.program
    standing = 0
    places: Counter = Counter()
    for v, codes in zip(program.invars, plan.in_codes, strict=True):
        standing += _bytes(v, codes, plan.sizes)
        places[_form(v, codes)] += 1
    for v, codes, pin in zip(program.outvars, plan.out_codes, out_pins, strict=True):
        if isinstance(v, Literal):
            continue
        # XLA reuses a donated buffer only for a result of the same shape, dtype and layout.
        if pin is not None and places[_form(v, codes)]:
            places[_form(v, codes)] -= 1
        else:
            standing += _bytes(v, codes, plan.sizes)
    return standing + spans_on(device, program)(program, plan).find_peak()[1]


def _form(v: Var, codes: Codes) -> tuple:
    aval: Any = v.aval
    return tuple(aval.shape), str(aval.dtype), codes


def _bytes(v: Var, codes: Codes, sizes: Codes) -> int:
    aval: Any = v.aval
    return math.prod(local_shape(aval.shape, codes, sizes)) * getattr(aval.dtype, "itemsize", 4)


def live_at_peak(program: Program, plan: Plan | None = None, device: str = "") -> tuple[set, set]:
    """Return the variables that are live at the peak of a program, and those that it reads on both sides of it.

    The second are read before and after: a copy of one in another layout lives there too.
    """
    spans = spans_on(device, program)(program, plan)
    when, _ = spans.find_peak()
    live = spans.live_at(when) | set(program.invars)
    before: set = set()
    after: set = set()
    for i, eqn in enumerate(program.eqns):
        (before if i <= when else after).update(v for v in eqn.invars if isinstance(v, Var))
    return live, before & after


@dataclass
class _Found:
    plan: Any
    bytes: int
    us: float


def fastest_within(
    solve: Callable[..., tuple[Any, float]],
    learn: Callable[[Any], None],
    holds: Callable[[Any], int],
    cost: CostModel,
    limit_bytes: float,
) -> Any:
    """Return the fastest plan found that fits.

    ``solve``: prices, and a bound in the planner's own terms or None → plan, and its time apart from memory's
    price.
    ``learn``: add the peak of a plan to the moments at which memory has a price.
    """

    def at(price: float | None, row: float | None = None) -> _Found:
        plan, us = solve(cost if price is None else replace(cost, memory_us_per_byte=price), row)
        return _Found(plan, holds(plan), us)

    free = at(None)
    # Most limits are the device's memory, which the fastest plan keeps: one plan, not a dozen.
    if free.bytes <= limit_bytes:
        return free.plan
    found = _search_with_memory_price(at, learn, free, cost, limit_bytes)
    found.unlimited_us = free.us
    return found


def _search_with_memory_price(
    at: Callable[..., _Found], learn: Callable[[Any], None], free: _Found, cost: CostModel, limit_bytes: float
) -> Any:
    """Return the fastest plan found that fits, where the fastest of all does not."""
    byte_us = 1e6 / cost.interconnect_bytes_per_s
    smallest = free
    # Memory's price sees the peak of the undivided program. A plan may peak elsewhere, so each plan adds its own peak,
    # until the smallest plan does not get smaller.
    for _ in range(_LESSONS):
        found = at(_HIGHEST * byte_us)
        is_smaller = found.bytes < smallest.bytes
        smallest = found if is_smaller else smallest
        learn(found.plan)
        if smallest.bytes <= limit_bytes or not is_smaller and smallest is not free:
            break
    if smallest.bytes > limit_bytes:
        least = _rounded_up(smallest.bytes)
        raise OutOfMemoryError(
            f"a plan within {limit_bytes:,.0f} bytes per device",
            f"the smallest plan found holds {smallest.bytes:,} bytes at its fullest moment, "
            f"the fastest one {free.bytes:,}",
            "parameters, state, saved activations and gathered copies must fit",
            f"memory_limit_bytes={least}, of auto.plan memory={least}, or release pins, checkpoint activations, "
            "split the batch, or use more devices",
        )
    # Half-way on a logarithmic scale: which price a plan changes at is known to no power of ten.
    best, low, high = smallest, math.log(_LOWEST * byte_us), math.log(_HIGHEST * byte_us)
    for _ in range(_TRIES):
        middle = (low + high) / 2
        found = at(math.exp(middle))
        if found.bytes > limit_bytes:
            low = middle
        else:
            high = middle
            if found.us < best.us:
                best = found
    row = float(limit_bytes)
    for _ in range(_ROW_TRIES):
        found = at(None, row)
        if found.bytes <= limit_bytes:
            return min(best, found, key=lambda f: f.us).plan
        # The linear program sees less than liveness does: tighten its row by as much as the plan was over.
        row *= 0.98 * limit_bytes / found.bytes
    return best.plan


def _rounded_up(count: int) -> int:
    """Return a number of three digits that is at least ``count``."""
    digits = 10 ** max(len(str(count)) - 3, 0)
    return -(-count // digits) * digits
