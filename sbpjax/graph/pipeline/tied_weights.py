"""Tied weights: sums of gradients stay on their stage until the loop over micro-batches is over.

A weight of stage 0 that the last stage reads too (an embedding that is also the head) gets a gradient from there in
every micro-batch. Sent at once it would cross the pipeline as often as there are micro-batches:

    sum ← sum + own gradient + sent(gradient of the last stage)             before
    sum ← sum + own gradient;   sum' ← sum' + gradient of the last stage    after; sum + sent(sum') after the loop
"""

from __future__ import annotations

import jax

from sbpjax._core.jax_private import Literal, Var, new_jaxpr_eqn, no_effects
from sbpjax._core.programs.normalise import live_equations
from sbpjax.sbp.stage import stage_transfer_p

from .loop import Carry, MicroBatchLoop


def keep_sums_local(loop: MicroBatchLoop) -> None:
    """Rewrite the sums of a loop in place so that no term of them is sent in the loop."""
    body = loop.body
    maker = {v: eqn for eqn in body.eqns for v in eqn.outvars}
    uses: dict[Var, int] = {}
    for atom in (*(v for eqn in body.eqns for v in eqn.invars), *body.outvars):
        if isinstance(atom, Var):
            uses[atom] = uses.get(atom, 0) + 1
    for carry in list(loop.carries):
        terms = _terms(carry.after, maker, uses)
        sent = [v for v in terms if v in maker and maker[v].primitive is stage_transfer_p and uses[v] == 1]
        if carry.before not in terms or not sent:
            continue
        place = loop.carries.index(carry)
        rest = [v for v in terms if v not in sent and v is not carry.before]
        carry.after = body.outvars[place] = _append_sum(body.eqns, [carry.before, *rest])
        total, carry.last = carry.last, Var(carry.last.aval)
        parts: list[Var] = [carry.last]
        behind: list = []
        for v in sent:
            transfer = maker[v]
            value = transfer.invars[0]
            own = Carry(Var(value.aval), None, None, Var(value.aval))
            own.after = _append_sum(body.eqns, [own.before, value])
            body.invars.append(own.before)
            body.outvars.append(own.after)
            loop.carries.append(own)
            arrived = Var(value.aval)
            behind.append(transfer.replace(invars=[own.last], outvars=[arrived]))
            parts.append(arrived)
        _append_sum(behind, parts, total)
        loop.post[:0] = behind
    body.eqns[:] = live_equations(body.eqns, body.outvars)


def _terms(value, maker: dict, uses: dict) -> list:
    """Return the terms of a sum; sums that others read too count as one term."""
    if not isinstance(value, Var) or value not in maker:
        return [value]
    eqn = maker[value]
    # A partial sum that something else reads has to exist.
    if eqn.primitive.name not in ("add", "add_any") or uses.get(value, 0) > 1:
        return [value]
    if any(isinstance(v, Literal) or v.aval.shape != value.aval.shape for v in eqn.invars):
        return [value]
    return [term for v in eqn.invars for term in _terms(v, maker, uses)]


def _append_sum(eqns: list, values: list, into: Var | None = None):
    """Append additions of values to equations, and return the variable of the sum."""
    total = values[0]
    for i, value in enumerate(values[1:], 2):
        out = into if into is not None and i == len(values) else Var(total.aval)
        eqns.append(new_jaxpr_eqn([total, value], [out], jax.lax.add_p, {}, no_effects))
        total = out
    return total
