"""Jaxpr normalization: inlines calls and drops dead equations.

``jit``, ``custom_jvp_call``, ``custom_vjp_call``, ``closed_call`` and ``remat2`` are calls: planning looks through
them. A remat with ``prevent_cse`` leaves an ``optimization_barrier`` on its inputs, as JAX's own lowering does, so that
XLA does not merge the recomputation with the first computation. Work is linear in the number of equations.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import (
    ClosedJaxpr,
    DropVar,
    JaxprEqn,
    Literal,
    Var,
    new_jaxpr_eqn,
    no_effects,
    optimization_barrier_p,
    source_info_util,
)
from sbpjax._core.programs.primitives import CALLS, HINTS, JITS
from sbpjax._core.runtime import sizes
from sbpjax._core.runtime.user_line import is_library_file

from .batched_while import with_one_condition


@dataclass
class Program:
    """A flat program.

    Attributes:
        invars: the inputs.
        consts: constant variables with their values.
        eqns: the equations, in order; none is a call.
        outvars: the outputs: variables or literals.
    """

    invars: list[Var]
    consts: dict[Var, object]
    eqns: list
    outvars: list


def normalise(closed) -> Program:
    """Return the flat program of a closed jaxpr.

    Raises:
        OutOfMemoryError: an array of it has 2^63 bytes or more.
    """
    program = _flatten_jaxpr(closed, CALLS, {})
    sizes.check_equations("a program", program.eqns)
    return program


def _flatten_jaxpr(inner, calls: dict[str, str], bodies: dict) -> Program:
    """Return the flat program of a jaxpr, closed or not; ``bodies`` are the flat programs of its calls by identity."""
    jaxpr, consts = inner, {}
    if isinstance(inner, ClosedJaxpr):
        jaxpr = inner.jaxpr
        consts = dict(zip(jaxpr.constvars, inner.consts, strict=True))
    eqns: list = []
    env: dict = {}
    _inline(jaxpr.eqns, env, eqns, consts, calls, bodies)
    outvars = [_read(env, v) for v in jaxpr.outvars]
    eqns, used = _live(eqns, outvars)
    return Program(list(jaxpr.invars), {v: c for v, c in consts.items() if v in used}, eqns, outvars)


def _read(env: dict, atom):
    return atom if isinstance(atom, Literal) else env.get(atom, atom)


def _inline(source, env: dict, eqns: list, consts: dict, calls: dict[str, str], bodies: dict) -> None:
    for eqn in source:
        primitive, invars = eqn.primitive, eqn.invars
        # Looked through before a list is made: most equations read nothing that was renamed.
        if env:
            for v in invars:
                if v.__class__ is not Literal and v in env:
                    invars = [v if v.__class__ is Literal else env.get(v, v) for v in invars]
                    break
        name = primitive.name
        if name in calls and calls[name] in eqn.params:
            inner = eqn.params[calls[name]]
        # `body_of` looks through ``jit`` alone: a body that is spliced in later keeps its hints and solves.
        elif calls is not CALLS:
            inner = None
        # Dropped, not planned: in `shard_map` a sharding constraint has no meaning, and one from inside a library names
        # another mesh.
        elif name in HINTS and len(invars) == len(eqn.outvars) and not _moves_to_other_memory(eqn):
            env.update(zip(eqn.outvars, invars, strict=True))
            continue
        # The other three programs of a solve are for its derivatives, which are traced by now.
        elif name == "custom_linear_solve":
            inner, invars = _solve(eqn, invars)
        else:
            inner = None
        if inner is None:
            eqn = eqn if invars is eqn.invars else eqn.replace(invars=invars)
            eqns.append(with_one_condition(eqn) if name == "while" and calls is CALLS else eqn)
            continue
        # The copy of the forward that a backward computes again; the first one has nothing that XLA could merge it
        # with.
        if name in ("remat2", "checkpoint") and eqn.params["prevent_cse"] and eqn.params["differentiated"]:
            invars = _barrier(invars, eqn, eqns)
        # By identity: JAX keeps one jaxpr per function and types, so equal calls hold the same one, and comparing
        # jaxprs would cost as much as flattening them. The `Body` holds on to it, so that its id is not given to
        # another.
        body = bodies.get(id(inner))
        if body is None:
            body = bodies[id(inner)] = Body(_flatten_jaxpr(inner, calls, bodies), inner)
        env.update(zip(eqn.outvars, body.splice(invars, eqn.source_info, eqns, consts), strict=True))


class Body:
    """A flat program that replaces its calls: every call gets its equations, on variables of its own.

    A variable is a number here: its place among the inputs, the constants, and the results of the equations, in order.

    Args:
        flat: the program.
        source: the jaxpr it was made from, kept alive so that its identity stays its own.
    """

    def __init__(self, flat: Program, source) -> None:
        self.source = source
        self._consts = [(v.aval, value) for v, value in flat.consts.items()]
        # By identity: equal literals of other types are equal as keys, and arrays cannot be hashed.
        literals = {id(v): v for e in flat.eqns for v in e.invars if v.__class__ is Literal}
        literals.update((id(v), v) for v in flat.outvars if v.__class__ is Literal)
        self._literals = list(literals.values())
        places: dict = {v: i for i, v in enumerate((*flat.invars, *flat.consts, *literals))}  # a literal by identity
        stacks: dict = {}
        self._eqns = []
        for eqn in flat.eqns:
            read = [places[id(v) if v.__class__ is Literal else v] for v in eqn.invars]
            for v in eqn.outvars:
                places[v] = len(places)
            stack = stacks.setdefault(eqn.source_info.name_stack, len(stacks))
            self._eqns.append((eqn, read, [_fresh(v) for v in eqn.outvars], stack))
        self._stacks = list(stacks)
        # The names around the last call, and the source infos of its equations.
        self._lines: tuple = (None, [])
        self._outs = [places[id(v) if v.__class__ is Literal else v] for v in flat.outvars]

    def splice(self, operands, source, eqns: list, consts: dict, own_lines: bool = True) -> list:
        """Add the equations of a call to others, under the call's names, as JAX's lowering does; return its results.

        Args:
            operands: the operands of the call.
            source: the source info of the call.
            eqns: the list that receives its equations.
            consts: the dict that receives its constants.
            own_lines: whether an equation keeps its own source line, instead of the call's.
        """
        values = list(operands)
        for aval, value in self._consts:
            fresh = Var(aval)
            consts[fresh] = value
            values.append(fresh)
        values += self._literals
        infos = self._own_infos(source.name_stack) if own_lines else self._infos(source)
        # Made directly, since `eqn.replace` takes several times as long, and a 48-layer step makes 20,000 equations
        # here.
        new, add = JaxprEqn, eqns.append
        for (eqn, read, made, _), info in zip(self._eqns, infos):
            outvars = [make(a) for make, a in made]
            add(new([values[i] for i in read], outvars, eqn.primitive, eqn.params, eqn.effects, info, eqn.ctx))
            values += outvars
        return [values[i] for i in self._outs]

    def _infos(self, source) -> list:
        """Return the source infos of the equations of a call that has one source line."""
        infos = [source.replace(name_stack=source.name_stack + own) for own in self._stacks]
        return [infos[own] for _, _, _, own in self._eqns]

    def _own_infos(self, around) -> list:
        """Return the source infos of the equations, which keep their lines, under the names around a call."""
        if self._lines[0] is None or self._lines[0] != around:
            stacks = [around + own for own in self._stacks]
            self._lines = around, [e.source_info.replace(name_stack=stacks[own]) for e, _, _, own in self._eqns]
        return self._lines[1]


def _fresh(v: Var) -> tuple:
    """Return the class and aval for a new variable like ``v``; dropped results keep their class."""
    return (DropVar if v.__class__ is DropVar else Var), v.aval


def body_of(closed) -> Body:
    """Return a closed jaxpr, the ``jit`` calls in it inlined, as a `Body` that replaces its calls."""
    return Body(_flatten_jaxpr(closed, JITS, {}), closed)


def _moves_to_other_memory(eqn) -> bool:
    """Return whether an equation offloads its operand to the host, or brings it back."""
    return any(isinstance(d, jax.memory.Space) for d in eqn.params.get("devices", ()))


def _solve(eqn, invars: list):
    """Return the body of a linear solve, which its result comes from, and the operands of that body."""
    lengths = eqn.params["const_lengths"]
    first = lengths.matvec + lengths.vecmat
    return eqn.params["jaxprs"].solve, invars[first : first + lengths.solve] + invars[sum(lengths) :]


def _barrier(invars: list, eqn, eqns: list) -> list:
    held = [v for v in invars if isinstance(v, Var)]
    if not held:
        return invars
    after = {v: Var(v.aval) for v in held}
    # One equation each, so that each operand is planned for itself; the lowering runs adjacent barriers as one.
    for before, behind in after.items():
        eqns.append(new_jaxpr_eqn([before], [behind], optimization_barrier_p, {}, no_effects, eqn.source_info))
    return [v if isinstance(v, Literal) else after[v] for v in invars]


def live_equations(eqns: list, outvars: list) -> list:
    """Return the equations that outputs depend on, and those with effects."""
    return _live(eqns, outvars)[0]


def _live(eqns: list, outvars: list) -> tuple[list, set]:
    needed = {v for v in outvars if v.__class__ is not Literal}
    kept = []
    for eqn in reversed(eqns):
        if not eqn.effects:
            for v in eqn.outvars:
                if v in needed:
                    break
            else:
                continue
        kept.append(eqn)
        for v in eqn.invars:
            if v.__class__ is not Literal:
                needed.add(v)
    kept.reverse()
    return kept, needed


def evaluate(eqns, env: dict) -> None:
    """Run equations on the values of an environment, in a trace.

    Args:
        eqns: flat equations.
        env: variable → value; results of the equations are added.
    """
    for eqn in eqns:
        operands = [v.val if isinstance(v, Literal) else env[v] for v in eqn.invars]
        env.update(zip(eqn.outvars, bind(eqn, operands), strict=True))


def run_program(program: Program, arrays: Sequence, equation: Callable | None = None) -> tuple[jax.Array, ...]:
    """Run a flat program on whole arrays, in a trace.

    Args:
        program: the program.
        arrays: its inputs.
        equation: ``(position, equation, operands) -> results``, where some run otherwise than by `bind`.
    """
    env = {**program.consts, **dict(zip(program.invars, arrays, strict=True))}
    for i, eqn in enumerate(program.eqns):
        operands = [v.val if isinstance(v, Literal) else env[v] for v in eqn.invars]
        results = bind(eqn, operands) if equation is None else equation(i, eqn, operands)
        env.update(zip(eqn.outvars, results, strict=True))
    outvars: list[Any] = program.outvars
    # A bare number would be weakly typed, and its readers would have another dtype.
    return tuple(jnp.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else env[v] for v in outvars)


def bind(eqn, operands) -> list:
    """Bind the primitive of an equation to operands, and return its results as a list."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    subfuns, params = bound if isinstance(bound, tuple) else ((), bound)  # before JAX 0.10.2: (functions, params)
    with source_context(eqn), eqn.ctx.manager:
        result = eqn.primitive.bind(*subfuns, *operands, **params)
    return list(result) if eqn.primitive.multiple_results else [result]


def source_context(eqn):
    """Return a context in which new equations take the place of ``eqn`` in the user's source."""
    stack, own = source_info_util.current_name_stack(), eqn.source_info.name_stack
    if not own.stack or stack.stack[-len(own.stack) :] != own.stack:  # else a rule binds its own equation
        stack = stack + own
    return source_info_util.user_context(eqn.source_info.traceback, name_stack=stack)


def scan_counts(params: dict) -> tuple[int, int]:
    """Return the numbers of constant and of carried operands of a ``scan``; the others are scanned over."""
    # Up to JAX 0.10.
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # since JAX 0.11
    return len(list(consts)), len(list(carry))


def run_scan_with_body(params: dict, run, consts, carried, xs) -> list:
    """Run a ``scan`` with another body in the place of its own, and return the last carry and the stacks.

    Args:
        params: the parameters of the ``scan``: its length, direction and unrolling stay.
        run: the body, ``(*consts, *carried, *slices) -> (*carried, *slices of the stacks)``.
        consts: the operands of every iteration.
        carried: the initial carry.
        xs: the stacks that the iterations take slices of.
    """
    count = len(carried)

    def iteration(state, slices):
        results = run(*consts, *state, *slices)
        return tuple(results[:count]), tuple(results[count:])

    last, kept = jax.lax.scan(
        iteration,
        tuple(carried),
        tuple(xs),
        length=params["length"],
        reverse=params["reverse"],
        unroll=params["unroll"],
    )
    return [*last, *kept]


def while_counts(params: dict) -> tuple[int, int]:
    """Return the numbers of constants of a ``while``'s condition and of its body; the other operands are carried."""
    return params["cond_nconsts"], params["body_nconsts"]


def is_backward(eqn) -> bool:
    """Return whether an equation came from transposing, and so belongs to a backward: JAX marks its name stack."""
    return any(getattr(part, "name", "") == "transpose" for part in eqn.source_info.name_stack.stack)


def source_line(eqn) -> str:
    """Return ``file:line`` of the user's code that made an equation, or an empty string."""
    traceback = eqn.source_info.traceback
    if traceback is None:
        return ""
    for frame in source_info_util.user_frames(traceback):
        if not is_library_file(frame.file_name):
            return f"{_cell_name(frame.file_name)}:{frame.start_line}"
    return ""


def _cell_name(file: str) -> str:
    """Return ``In[3]`` for a cell of a notebook, whose file is a temporary one; another file as it is."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or os.path.exists(file):
        return file
    cell = getattr(shell.compile, "format_code_name", lambda name: None)(file)
    return file if cell is None else cell[1]


def scopes_of(eqn) -> list[str]:
    """Return the named scopes in which an equation was traced, outermost first; modules and formulas are such."""
    return [part.name for part in eqn.source_info.name_stack.stack if type(part).__name__ == "Scope"]
