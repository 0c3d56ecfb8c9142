"""Recursive program rewrites: apply a change to a program and to the programs inside it.

A loop over layers holds its body as a parameter of one equation, and equal layers hold the same body. `rewrite_program`
makes a change in each of them once, however often it is held, and leaves an equation unchanged if its bodies are: code
that compares programs by identity still finds the same one.

    scan[jaxpr=body] … scan[jaxpr=body]   →   scan[jaxpr=changed] … scan[jaxpr=changed]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbpjax._core.jax_private import ClosedJaxpr


def rewrite_program(closed: ClosedJaxpr, change: Callable[[ClosedJaxpr, Callable], ClosedJaxpr]) -> ClosedJaxpr:
    """Return a program after a change.

    Args:
        closed: the program.
        change: takes a program and a function that returns an equation with the programs inside it changed; returns the
            changed program, or the same one if nothing changes.
    """
    done: dict[int, tuple] = {}
    # Parameters without programs, which equal layers share; by identity, and kept for it.
    plain: dict[int, dict] = {}

    def of(closed: ClosedJaxpr) -> ClosedJaxpr:
        found = done.get(id(closed))
        if found is None:
            # The original lives on, so its id stays its own.
            found = done[id(closed)] = change(closed, inside), closed
        return found[0]

    def inside(eqn):
        params = eqn.params
        # Spliced bodies share the parameters of their equations (`normalise.Body`), so those of 48 layers are looked at
        # once.
        if not params or id(params) in plain:
            return eqn
        changed, found = {}, False
        for name, value in params.items():
            if value.__class__ is ClosedJaxpr:
                new: Any = of(value)
            elif value.__class__ is tuple and value and all(v.__class__ is ClosedJaxpr for v in value):
                new = tuple([of(v) for v in value])
                new = value if all(a is b for a, b in zip(new, value, strict=True)) else new
            else:
                continue
            found = True
            if new is not value:
                changed[name] = new
        if not found:
            plain[id(params)] = params
        return eqn.replace(params={**params, **changed}) if changed else eqn

    return of(closed)
