"""Layout pins inside a program: fix the layout of a value where it is computed, as `to_global` does.

The value's readers read the pinned copy; the strategy that computes the value, and the conversions by its readers, stay
the planner's choice. A value in a loop's body is pinned in every iteration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sbpjax._core.jax_private import ClosedJaxpr, Var, new_jaxpr_eqn, no_effects
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Codes
from sbpjax.sbp.boxing_marker import to_sbp_p
from sbpjax.sbp.placement import placement as Placement

from .boundaries import Activation
from .control import body_program


def pin_values(program: Program, marks: Mapping[Activation, Codes], placement: Placement) -> Program:
    """Return the program with a pin after each of some values.

    Args:
        program: the flat program in which the activations were found.
        marks: activation → its nd-sbp.
        placement: where the program runs.
    """
    return _pin_program(program, {(a.loops, a.eqn, a.position): c for a, c in marks.items()}, placement)


def _pin_program(program: Program, marks: dict, placement: Placement) -> Program:
    renamed: dict[Var, Var] = {}
    eqns = []
    here = {(eqn, position): codes for (loops, eqn, position), codes in marks.items() if not loops}
    inside: dict[int, dict] = {}
    for (loops, eqn, position), codes in marks.items():
        if loops:
            inside.setdefault(loops[0], {})[loops[1:], eqn, position] = codes
    for i, eqn in enumerate(program.eqns):
        if any(isinstance(v, Var) and v in renamed for v in eqn.invars):
            eqn = eqn.replace(invars=[renamed.get(v, v) if isinstance(v, Var) else v for v in eqn.invars])
        if i in inside:
            body = _close_body(
                eqn.params["jaxpr"], _pin_program(body_program(eqn.params["jaxpr"]), inside[i], placement)
            )
            eqn = eqn.replace(params={**eqn.params, "jaxpr": body})
        eqns.append(eqn)
        for position, v in enumerate(eqn.outvars):
            codes = here.get((i, position))
            if codes is not None:
                copy = renamed[v] = Var(v.aval)
                # No layout for the gradient: the backward is part of the program already, and has pins of its own if
                # any.
                params = {"placement": placement, "codes": codes, "grad_codes": None}
                eqns.append(new_jaxpr_eqn([v], [copy], to_sbp_p, params, no_effects, eqn.source_info))
    outvars = [renamed.get(v, v) if isinstance(v, Var) else v for v in program.outvars]
    return dataclasses.replace(program, eqns=eqns, outvars=outvars)


def _close_body(old, body: Program):
    """Return a closed jaxpr of a body, in the place of the one it was made from."""
    jaxpr = old.jaxpr.replace(constvars=list(body.consts), invars=body.invars, outvars=body.outvars, eqns=body.eqns)
    return ClosedJaxpr(jaxpr, list(body.consts.values()))
