"""Connected components of a program: the parts that share only uniform scalars.

An optimizer's update of 150 parameters is 150 components that share the learning rate and the step count. Planned as
one program their choices multiply; planned as parts they add, and parts of the same form are planned once.

A *uniform* value is a scalar computed from uniform scalars alone: it is broadcast everywhere and takes no part in
any choice.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbpjax._core.jax_private import Literal, Var
from sbpjax._core.programs.normalise import Program


@dataclass
class Part:
    """A connected component of a program.

    Attributes:
        indices: the positions of its equations in the program.
        eqns: the equations.
        given: the layouts of the inputs it reads.
        pins: ``(variable, codes)`` wanted at the end.
        uniform: the uniform values of the program.
        live: values that are read by some equation or returned.
        last_reads: for each equation the values that nothing reads after it.
        key: equal for parts of the same form.
    """

    indices: list[int]
    eqns: list
    given: dict
    pins: list
    uniform: set
    live: set
    last_reads: list[set]
    key: object


def parts_of(program: Program, given: dict, out_pins, everywhere) -> list[Part]:
    """Return the components of a program whose inputs have the layouts ``given``."""
    uniform = uniform_values(program, given, everywhere)
    leader: dict = {}

    # Union-find: an optimizer's update over 150 parameters comes apart into 150 pieces in one pass.
    def find(v):
        root = v
        while leader.setdefault(root, root) is not root:
            root = leader[root]
        # Path compression: a transformer's chain of thousands of values is one part.
        while leader[v] is not root:
            leader[v], v = root, leader[v]
        return root

    members = []
    for eqn in program.eqns:
        own = [v for v in (*eqn.invars, *eqn.outvars) if isinstance(v, Var) and v not in uniform]
        for v in own[1:]:
            leader[find(v)] = find(own[0])
        members.append(own)
    groups: dict = {}
    for i, own in enumerate(members):
        groups.setdefault(find(own[0]) if own else ("uniform", i), []).append(i)
    pins = [(v, p) for v, p in zip(program.outvars, out_pins, strict=True) if p is not None and isinstance(v, Var)]
    returned = {v for v in program.outvars if isinstance(v, Var)}
    consts = set(program.consts)
    return [_part(program, indices, given, pins, uniform, returned, consts, everywhere) for indices in groups.values()]


def uniform_values(program: Program, given: dict, everywhere) -> set:
    """Return the scalars of a program that are computed from broadcast scalar inputs alone."""

    def scalar(v) -> bool:
        return getattr(v.aval, "shape", None) == ()

    # A scalar that the user gave as P is a sum that has to be reduced: no number, but a value like others.
    uniform = {v for v in program.invars if scalar(v) and given[v] == everywhere}
    uniform |= {v for v in program.consts if scalar(v)}
    for eqn in program.eqns:
        if all(isinstance(v, Literal) or v in uniform for v in eqn.invars) and all(scalar(v) for v in eqn.outvars):
            uniform.update(eqn.outvars)
    return uniform


def _part(program: Program, indices, given, pins, uniform, returned, consts, everywhere) -> Part:
    eqns = [program.eqns[i] for i in indices]
    number: dict = {}
    form = []
    for eqn in eqns:
        ins = tuple(_name(v, number, uniform) for v in eqn.invars)
        outs = tuple(number.setdefault(v, len(number)) for v in eqn.outvars)
        avals = tuple((getattr(v.aval, "shape", ()), str(getattr(v.aval, "dtype", ""))) for v in eqn.outvars)
        form.append((eqn.primitive.name, _params(eqn), ins, outs, avals))
    held = {v: given.get(v, everywhere) for v in number if v in given or v in consts}
    own_pins = [(v, p) for v, p in pins if v in number]
    last: list[set] = [set() for _ in eqns]
    seen = set(returned)
    # Backwards: the first reader met is the last in the program. Returned values are never dropped.
    for position in range(len(eqns) - 1, -1, -1):
        for v in eqns[position].invars:
            if isinstance(v, Var) and v not in seen:
                seen.add(v)
                last[position].add(v)
    live = seen
    key = (
        tuple(form),
        tuple((number[v], c, v.aval.shape, str(v.aval.dtype)) for v, c in held.items()),
        tuple((number[v], p) for v, p in own_pins),
        tuple(sorted(number[v] for v in number if v in returned)),
    )
    return Part(list(indices), eqns, held, own_pins, uniform, live, last, key)


def _name(v, number: dict, uniform: set):
    # By type, not by value: updates that differ in a constant are one form.
    if isinstance(v, Literal):
        return ("literal", str(v.aval))
    if v in uniform:
        return ("uniform", str(v.aval))
    return number.setdefault(v, len(number))


def _params(eqn):
    params = tuple(sorted(eqn.params.items(), key=lambda item: item[0]))
    try:
        hash(params)
    except TypeError:  # a parameter that cannot be hashed: equal to nothing but itself
        return id(eqn)
    return params
