"""Slack of conversions: the time that each may take before the step waits for it.

A gradient is needed when the update begins, long after the equation that makes it: meanwhile the rest of the backward
computes, and the latency of its reduction is hidden. The activation that the next product reads is needed at once. So
each equation gets the earliest time at which it can end and the latest at which it must begin for the step to end in
time, as in a network plan, with every equation divided over all ranks; a value's slack is the latest beginning of its
readers less the earliest end of its producer. On the longest path it is 0.

Only latency is hidden by slack, as in OneFlow's trunk algorithm: the bytes of all conversions share one interconnect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sbpjax._core.jax_private import Var
from sbpjax._core.programs.normalise import Program

# Of the latency this much is never hidden: between equals, fewer collectives are better.
VISIBLE = 0.05


def slack_us(program: Program, equation_us: Callable) -> Mapping[Var, float]:
    """Return for every variable of a program the time between the end of its producer and the start of its readers.

    Args:
        program: the flat program; a loop is one equation of it.
        equation_us: equation → its time on one rank.
    """
    # Forwards the earliest end, backwards the latest start: critical-path analysis with unlimited workers.
    times = [equation_us(e) for e in program.eqns]
    end: dict[Var, float] = {}
    for eqn, time in zip(program.eqns, times, strict=True):
        start = max((end.get(v, 0.0) for v in eqn.invars if isinstance(v, Var)), default=0.0)
        end.update(dict.fromkeys(eqn.outvars, start + time))
    total = max(end.values(), default=0.0)
    wanted: dict[Var, float] = {v: total for v in program.outvars if isinstance(v, Var)}
    for eqn, time in zip(reversed(program.eqns), reversed(times), strict=True):
        begin = min((wanted.get(v, total) for v in eqn.outvars), default=total) - time
        for v in eqn.invars:
            if isinstance(v, Var):
                wanted[v] = min(wanted.get(v, total), begin)
    return {v: max(0.0, latest - end.get(v, 0.0)) for v, latest in wanted.items()}
