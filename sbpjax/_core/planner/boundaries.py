"""Boundary activations: the values that cross module boundaries, with their layouts in a plan.

In ``model(x) = down(gelu(up(x)))`` the results of ``up``, of the activation function and of ``down`` leave their
modules; intermediate results (a product without its bias, a variance) do not. A user can name the former, so reports
list them and plan files pin them: ``model.up.output``, ``model.act.output``. A value that leaves several modules at
once is named after the outermost. Values computed from a backward, as an optimizer's are, do not count.

A step that names no modules (`jax.named_scope` in plain JAX) has the results of its products and lookups instead, in
program order: ``dot_general``, ``dot_general.1``, ``gather``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sbpjax._core.jax_private import Var
from sbpjax._core.programs.normalise import Program, is_backward, scopes_of, source_line
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax._core.programs.primitives import PRODUCTS

from .control import body_program

_MODULE = re.compile(r"^\w+(\.\w+)*$")


@dataclass(frozen=True)
class Activation:
    """A value that one module produces and another reads in the forward.

    Attributes:
        name: the module's name and ``.output``; ``.output.1`` for a second value.
        loops: the equations of the loops around it, from the outermost.
        eqn: the equation that makes it, in the innermost loop's body.
        position: the position among its results.
        shape: the logical shape.
        dtype: the dtype.
        line: the user's ``file:line``.
    """

    name: str
    loops: tuple[int, ...]
    eqn: int
    position: int
    shape: tuple[int, ...]
    dtype: Any
    line: str = ""

    def variable(self, program: Program) -> Var:
        """Return the value itself; in a loop, that of its body."""
        for i in self.loops:
            program = body_program(program.eqns[i].params["jaxpr"])
        return program.eqns[self.eqn].outvars[self.position]


def activations(program: Program) -> list[Activation]:
    """Return the boundary activations of a step, in program order, those in loops too."""
    found: list[Activation] = []
    used: dict[str, int] = {}
    scoped = _has_modules(program)
    for loops, i, position, path in _candidates(program, "", (), scoped):
        inner = program
        for k in loops:
            inner = body_program(inner.eqns[k].params["jaxpr"])
        eqn = inner.eqns[i]
        aval: Any = eqn.outvars[position].aval
        # A scalar has only one layout.
        if math.prod(aval.shape) < 2:
            continue
        number = used[path] = used.get(path, -1) + 1
        name = path + f".{number}" * bool(number)
        found.append(Activation(name, loops, i, position, tuple(aval.shape), aval.dtype, source_line(eqn)))
    return found


def codes_of(plan: Plan, activation: Activation) -> Codes | None:
    """Return the layout of an activation in a plan of its program; None if its loop is not planned.

    A value that is pinned as soon as it is computed has the pinned layout.
    """
    for i in activation.loops:
        if i not in plan.bodies:
            return None
        plan = plan.bodies[i]
    variable = plan.program.eqns[activation.eqn].outvars[activation.position]
    for i, eqn in enumerate(plan.program.eqns):
        if eqn.primitive.name == "to_sbp" and eqn.invars[0] is variable:
            return plan.outs(i)[0]
    return plan.outs(activation.eqn)[activation.position]


def module_of(eqn) -> str:
    """Return the dotted name of the module in whose call an equation was traced; a formula of `einsum` is none."""
    return ".".join(name for name in scopes_of(eqn) if _MODULE.match(name))


def _has_modules(program: Program) -> bool:
    return any(
        module_of(e) or e.primitive.name == "scan" and _has_modules(body_program(e.params["jaxpr"]))
        for e in program.eqns
        if not is_backward(e)
    )


def _candidates(program: Program, around: str, loops: tuple, scoped: bool) -> Iterator[tuple]:
    """Yield ``(loops, equation, position, name)``."""
    forward = forward_of(program)
    path = {i: _join_paths(around, module_of(program.eqns[i])) for i in forward}
    readers: dict[Var, list[str]] = {}
    for i in forward if scoped else ():
        for v in program.eqns[i].invars:
            if isinstance(v, Var):
                readers.setdefault(v, []).append(path[i])
    for v in program.outvars if scoped else ():
        if isinstance(v, Var):
            readers.setdefault(v, []).append(around)
    for i in forward:
        eqn = program.eqns[i]
        if eqn.primitive.name == "scan":
            yield from _candidates(body_program(eqn.params["jaxpr"]), path[i], (*loops, i), scoped)
        elif not scoped and eqn.primitive.name in PRODUCTS | {"gather"}:
            yield loops, i, 0, eqn.primitive.name
        for position, v in enumerate(eqn.outvars if scoped and path[i] else ()):
            left = [_outermost(path[i], reader) for reader in readers.get(v, ())]
            left = [name for name in left if name]
            if left:
                yield loops, i, position, f"{min(left, key=len)}.output"


def forward_of(program: Program) -> list[int]:
    """Return the equations that read nothing of a backward; those of an optimizer do."""
    late: set[Var] = set()
    found = []
    for i, eqn in enumerate(program.eqns):
        # The equations of an optimizer carry no mark, but they read a gradient.
        if is_backward(eqn) or any(isinstance(v, Var) and v in late for v in eqn.invars):
            late.update(eqn.outvars)
        else:
            found.append(i)
    return found


def _join_paths(around: str, inner: str) -> str:
    if not around or inner == around or inner.startswith(f"{around}."):
        return inner or around
    return f"{around}.{inner}" if inner else around


def _outermost(maker: str, reader: str) -> str:
    """Return the outermost module of a value's maker that its reader is not in."""
    parts = maker.split(".")
    for n in range(1, len(parts) + 1):
        name = ".".join(parts[:n])
        if reader != name and not reader.startswith(f"{name}."):
            return name
    return ""
