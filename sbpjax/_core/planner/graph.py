"""Planner graph: equivalence classes of equations, and the values that flow between them.

A program of 48 tied layers becomes one node per equation of a layer, with its number of members. A *value* has one
producer and a set of readers; values whose producers and readers fall into the same classes are one value with a count.
The bodies of loops belong to the graph, connected through ports (`loop_boundary`). The linear program of every mesh
axis is written from this graph, so it is built once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, cast

from sbpjax._core.jax_private import Literal, Var
from sbpjax._core.programs.equation_form import EquationForms
from sbpjax._core.programs.normalise import Program, scan_counts
from sbpjax._core.programs.plan import Codes
from sbpjax.sbp.algebra import FREE

from .components import uniform_values
from .control import body_program
from .loop_boundary import Loop, Region
from .prices.launches import launch_groups
from .shared_variables import tie_equations

# Ends of values. A node's end is (node, position); a fixed end holds the pinned nd-sbp.
Node = tuple[int, int]


@dataclass(frozen=True)
class Fixed:
    """An end of a value whose layout is given: a pinned input or output."""

    codes: Codes


@dataclass
class Group:
    """A class of equations, or of inputs or outputs whose layout is free, or a port of a loop.

    Attributes:
        members: positions of the equations in their program, or of the inputs or outputs.
        form: the number of the equations' form; -1 for inputs, outputs and ports.
        aval: for inputs, outputs and ports, shape and dtype.
        returned: whether it reads a value: an output, or an input in whose layout an output must come back.
        port: for ports, their kind.
        iterations: for ports, the iterations of their loop.
        times: the runs of each member in one run of the program.
        whole: for inputs, dims that may not be split.
        even: for inputs and outputs, whether split dims must divide evenly over all axes that split them.
    """

    members: list[int]
    form: int
    aval: Any = None
    returned: bool = False
    port: str | None = None
    iterations: int = 1
    times: int = 1
    whole: tuple[int, ...] = ()
    even: bool = False

    @property
    def count(self) -> int:
        """The runs of all members together in one run of the program."""
        return len(self.members) * self.times


@dataclass(frozen=True)
class Value:
    """A result of one producer, with its readers."""

    shape: tuple[int, ...]
    itemsize: int
    source: Node | Fixed
    readers: tuple


@dataclass
class Graph:
    """Nodes and values of a program.

    Attributes:
        region: the program, with the node of every equation.
        forms: the forms of its equations.
        nodes: classes of equations and ports of loops, then classes of free inputs.
        values: each value with the number of times it occurs.
        node_of_input: the node of every free input.
        node_of_output: the node of every free output, where outputs must divide evenly.
        uniform: values that take no part.
        live: values that are live at peak memory, with the number of their live members; empty while memory has no
            price.
        kept: those of them that are read before and after: a copy in another layout is held too.
        unpinned: the axes on which the user gave no layout: every pinned input, and every pin inside, is broadcast.
        returned: node → ``(position, shape, itemsize)`` of its results that are outputs without a pin.
        variables: the variables of every value, those in loops left out.
        slack_us: the slack of values whose readers can wait, see `_core.planner.prices.slack`.
        apart: value → the group of values none of whose conversions waits for another's, and the runs of the program
            that they are in, see `_core.planner.prices.launches`.
    """

    region: Region
    forms: EquationForms
    nodes: list[Group]
    values: dict[Value, int]
    node_of_input: dict[int, int]
    uniform: set
    node_of_output: dict[int, int] = field(default_factory=dict)
    live: dict[Value, int] = field(default_factory=dict)
    kept: dict[Value, int] = field(default_factory=dict)
    unpinned: tuple[int, ...] = ()
    returned: dict = field(default_factory=dict)
    variables: dict[Value, list[Var]] = field(default_factory=dict)
    slack_us: dict[Value, float] = field(default_factory=dict)
    apart: dict[Value, tuple[tuple, int]] = field(default_factory=dict)

    def equation(self, node: int):
        """Return an equation of a node's form, None for inputs and ports."""
        form = self.nodes[node].form
        return self.forms.examples[form] if form >= 0 else None


def build(
    program: Program,
    in_codes: Sequence[Codes | None],
    out_pins: Sequence,
    free_inputs: Sequence[int],
    everywhere: Codes,
    whole_dims: Mapping[int, Sequence[int]] = MappingProxyType({}),
    even: bool = False,
) -> Graph:
    """Return the graph of a program.

    Args:
        program: the flat program.
        in_codes: the nd-sbp of every input; ignored where free.
        out_pins: for every output its nd-sbp, None (free), or the position of the input whose layout it takes.
        free_inputs: positions of the inputs whose layout the planner chooses.
        everywhere: the all-broadcast nd-sbp.
        whole_dims: position of a free input → dims of it that stay whole.
        even: whether free inputs and outputs divide evenly, and no output is a partial sum.
    """
    free = set(free_inputs)
    given = {v: (None if i in free else in_codes[i]) for i, v in enumerate(program.invars)}
    uniform = uniform_values(program, given, everywhere)
    pins = _resolve_pins(program, in_codes, out_pins, free)
    # Layers whose parameters have different layouts are not equal: pins are part of the comparison.
    marks: dict = {("in", v): str(c) for v, c in given.items()}
    for v, pin in pins:
        if isinstance(v, Var):
            marks["out", v] = str("free" if isinstance(pin, int) else pin)
    ends: dict = {v: Fixed(c) for v, c in given.items() if c is not None}
    builder = _Builder(everywhere)
    region, readers = builder.region(program, uniform, ends, marks, 1)
    back: dict = {}
    for v, pin in pins:
        if isinstance(pin, int):
            back.setdefault(pin, []).append(v)
        elif pin is not None and isinstance(v, Var) and v not in uniform:
            readers.setdefault(v, []).append(Fixed(pin))
    node_of_input = _free_nodes(program, sorted(free), readers, back, ends, builder.nodes, uniform, whole_dims, even)
    node_of_output = _free_outputs(pins, readers, ends, builder.nodes, uniform) if even else {}
    builder.add_values(program, readers, ends, 1)
    graph = Graph(
        region, builder.forms, builder.nodes, builder.values, node_of_input, uniform, node_of_output,
        apart=builder.apart,
    )  # fmt: skip
    for v, found in readers.items():
        graph.variables.setdefault(_value(v, ends[v], found), []).append(v)
    given_codes = [c for v, c in given.items() if c is not None and v not in uniform] + builder.requested
    graph.unpinned = tuple(a for a in range(len(everywhere)) if all(c[a] == everywhere[a] for c in given_codes))
    for v, pin in pins if not even else ():
        end = ends.get(v) if pin is None and isinstance(v, Var) and v not in uniform else None
        if isinstance(end, tuple):
            value = _value(v, end, ())
            graph.returned.setdefault(end[0], set()).add((end[1], value.shape, value.itemsize))
    return graph


class _Builder:
    """Builder of the nodes and values of a program and of the bodies of its loops."""

    def __init__(self, everywhere: Codes) -> None:
        self.everywhere = everywhere
        self.forms = EquationForms()
        self.nodes: list[Group] = []
        self.values: dict[Value, int] = {}
        self.apart: dict[Value, tuple[tuple, int]] = {}
        self.requested: list[Codes] = []
        self._label_of: dict[tuple, int] = {}

    def region(self, program: Program, uniform: set, ends: dict, marks: dict, times: int) -> tuple[Region, dict]:
        """Add the nodes of a program that runs ``times`` times; return it with the readers of its values."""
        # Equal layers are one node with many members, so the problem does not grow with depth.
        numbers, classes, loops = self._ties(program, marks)
        members = Counter(classes)
        region, index, readers = Region(program), {}, {}
        # Constants are part of the program, which is one for all ranks.
        ends.update((v, Fixed(self.everywhere)) for v in program.consts)
        for i, eqn in enumerate(program.eqns):
            # Learning rates and step counts: broadcast in every plan, and read by so many that they would tie all.
            if eqn.outvars and all(v in uniform for v in eqn.outvars):
                region.nodes.append(None)
                continue
            found_node = index.get(classes[i])
            if found_node is None and eqn.primitive.name == "scan":
                found_node = index[classes[i]] = self._loop(eqn, uniform, times * members[classes[i]], *loops[i])
            elif found_node is None:
                found_node = index[classes[i]] = len(self.nodes)
                self.nodes.append(Group([], numbers[i], times=times))
            # Where the user gave a layout, the axis is in use: results may be divided on it.
            if eqn.primitive.name == "to_sbp":
                self.requested.append(self._complete_pin(eqn.params["codes"]))
            region.nodes.append(found_node)
            if isinstance(found_node, Loop):
                ins, outs = found_node.ins, found_node.outs
            else:
                self.nodes[found_node].members.append(i)
                ins = [(found_node, position) for position in range(len(eqn.invars))]
                outs = [(found_node, position) for position in range(len(eqn.outvars))]
            for end, v in zip(ins, eqn.invars, strict=True):
                if end is not None and isinstance(v, Var) and v not in uniform:
                    readers.setdefault(v, []).append(end)
            ends.update(zip(eqn.outvars, outs, strict=True))
        return region, readers

    def _complete_pin(self, codes: Codes) -> Codes:
        """Return the codes of a pin, with broadcast on the axes that it leaves open."""
        known = zip_longest(codes[: len(self.everywhere)], self.everywhere, fillvalue=FREE)
        return tuple(e if c == FREE else c for c, e in known)  # shorter codes cover the outer axes only

    def _ties(self, program: Program, marks: dict) -> tuple[list[int], list[int], dict]:
        """Return for every equation the number of its form and its class, and for every loop its marks and labels."""
        numbers = [self.forms.number(e) for e in program.eqns]
        loops = {i: self._labels(e, marks) for i, e in enumerate(program.eqns) if e.primitive.name == "scan"}
        labels = {i: (ins, outs) for i, (_, ins, outs) in loops.items()}
        return numbers, tie_equations(numbers, program, marks, labels), loops

    def _labels(self, eqn, marks: dict) -> tuple[dict, list[int], list[int]]:
        """Return the marks of a loop's body, and a label for each of its operands and outputs."""
        # Values with one label share one port: the parameters of equal layers, and the sums of their gradients.
        body = body_program(eqn.params["jaxpr"])
        (consts, carry), inside = scan_counts(eqn.params), {}
        kinds = [
            "shared" if p < consts else "carried" if p < consts + carry else "sliced" for p in range(len(body.invars))
        ]
        for kind, outer, v in zip(kinds, eqn.invars, body.invars, strict=True):
            inside["in", v] = f"{kind} {marks.get(('in', outer)) if isinstance(outer, Var) else 'literal'}"
        _, classes, _ = self._ties(body, inside)
        read: dict = {v: set() for v in body.invars}
        made: dict = {v: inside["in", v] for v in body.invars}
        for form, inner in zip(classes, body.eqns, strict=True):
            for position, v in enumerate(inner.invars):
                if isinstance(v, Var) and v in read:
                    read[v].add((form, position))
            made.update((v, (form, position)) for position, v in enumerate(inner.outvars))
        results = [made.get(v) if isinstance(v, Var) else None for v in body.outvars]
        requested = [marks.get(("out", v)) for v in eqn.outvars]
        ins, outs = [], []
        for position, v in enumerate(body.invars):
            label = (inside["in", v], v.aval.shape, str(v.aval.dtype), tuple(sorted(read[v])))
            # The label of a carried value includes its result in an iteration: sums of gradients of unlike layers must
            # not share a port.
            back = position - consts
            ins.append(self._label((*label, str(results[back]), requested[back]) if 0 <= back < carry else label))
        for position, v in enumerate(body.outvars):
            form = ("stacked", v.aval.shape, str(v.aval.dtype), str(results[position]), requested[position])
            outs.append(ins[consts + position] if position < carry else self._label(form))
        return inside, ins, outs

    def _label(self, form: tuple) -> int:
        return self._label_of.setdefault(form, len(self._label_of))

    def _loop(self, eqn, uniform: set, times: int, marks: dict, in_labels: list[int], out_labels: list[int]) -> Loop:
        """Add the ports and the body of a ``scan`` whose equation runs ``times`` times."""
        params = eqn.params
        body = body_program(params["jaxpr"])
        (consts, carry), iterations = scan_counts(params), params["length"]
        ports: dict = {}
        ins, outs, body_ins, body_outs = [], [], [], []
        for position, v in enumerate(body.invars):
            outer, aval = eqn.invars[position], cast(Any, v.aval)
            # A scalar that every iteration reads needs no port.
            if position < consts and not aval.shape and (isinstance(outer, Literal) or outer in uniform):
                ins.append(None)
                body_ins.append(None)
                continue
            kind = "shared" if position < consts else "carried" if position < consts + carry else "sliced"
            port = self._port(ports, in_labels[position], position, kind, aval, iterations, times)
            ins.append((port, 0))
            body_ins.append((port, 0))
        for position, v in enumerate(body.outvars):
            if position < carry:
                port = body_ins[consts + position][0]
            else:
                port = self._port(ports, out_labels[position], position, "stacked", v.aval, iterations, times)
            outs.append((port, 1 if position < carry else 0))
            body_outs.append((port, 1 if position < carry else 0))
        ends = {v: end for v, end in zip(body.invars, body_ins, strict=True) if end is not None}
        given = {v: self.everywhere if end is None else None for v, end in zip(body.invars, body_ins, strict=True)}
        inside = uniform_values(body, given, self.everywhere)
        region, readers = self.region(body, inside, ends, marks, times * iterations)
        for v, end in zip(body.outvars, body_outs, strict=True):
            if isinstance(v, Var) and v not in inside:
                readers.setdefault(v, []).append(end)
        self.add_values(body, readers, ends, times * iterations)
        return Loop(region, iterations, ins, outs, body_ins, body_outs)

    def _port(self, ports: dict, label: int, position: int, kind: str, aval, iterations: int, times: int) -> int:
        """Return the port of a label; ``position`` becomes one of its members."""
        port = ports.get(label)
        if port is None:
            port = ports[label] = len(self.nodes)
            self.nodes.append(Group([], -1, aval, port=kind, iterations=iterations, times=times))
        self.nodes[port].members.append(position)
        return port

    def add_values(self, program: Program, readers: dict, ends: dict, times: int) -> None:
        """Add the values of a program, each ``times`` times."""
        members: dict[Value, list[Var]] = {}
        for v, found in readers.items():
            value = _value(v, ends[v], found)
            self.values[value] = self.values.get(value, 0) + times
            members.setdefault(value, []).append(v)
        number = len(self.apart)  # of the program: no other begins with as many values after it, or it has none
        self.apart.update((v, ((number, *group), times)) for v, group in launch_groups(program, members).items())


def _resolve_pins(program: Program, in_codes, out_pins, free: set) -> list:
    """Return ``(variable, pin)`` of every output; a pin to an input that is not free becomes that input's nd-sbp."""
    result = []
    for v, pin in zip(program.outvars, out_pins, strict=True):
        # An updated parameter has the layout of its input if that is given; of a free one the input's node is the
        # reader.
        if isinstance(pin, int) and pin not in free:
            pin = in_codes[pin]
        result.append((v, pin))
    return result


def _free_nodes(
    program: Program, free: list[int], readers: dict, back: dict, ends: dict, nodes, uniform, whole_dims: Mapping, even
) -> dict:
    """Add a node per class of free inputs; inputs read at the same places by the same classes are one class."""
    index: dict = {}
    node_of_input = {}
    for i in free:
        v = program.invars[i]
        aval: Any = v.aval
        returned = [u for u in back.get(i, ()) if isinstance(u, Var) and u not in uniform]
        # Moments of one parameter are different classes: they are read by different equations.
        key = (
            aval.shape,
            str(aval.dtype),
            tuple(sorted(set(readers.get(v, ())), key=str)),
            tuple(str(ends.get(u)) for u in returned if u is not v),
            tuple(whole_dims.get(i, ())),
        )
        node = index.get(key)
        if node is None:
            node = index[key] = len(nodes)
            nodes.append(Group([], -1, v.aval, bool(returned), whole=key[-1], even=even))
        nodes[node].members.append(i)
        node_of_input[i] = node
        ends[v] = (node, 0)
    for i in free:
        for u in back.get(i, ()):
            if isinstance(u, Var) and u not in uniform and u is not program.invars[i]:
                readers.setdefault(u, []).append((node_of_input[i], 0))
    return node_of_input


def _free_outputs(pins: list, readers: dict, ends: dict, nodes: list, uniform: set) -> dict[int, int]:
    """Add a node per class of outputs without a pin, whose layouts are those that an input may have."""
    index: dict = {}
    node_of_output = {}
    for i, (v, pin) in enumerate(pins):
        if pin is not None or not isinstance(v, Var) or v in uniform:
            continue
        key = ends[v], v.aval.shape, str(v.aval.dtype)
        if key not in index:
            index[key] = len(nodes)
            nodes.append(Group([], -1, v.aval, returned=True, even=True))
        node = node_of_output[i] = index[key]
        nodes[node].members.append(i)
        readers.setdefault(v, []).append((node, 0))
    return node_of_output


def _value(v, source, readers) -> Value:
    itemsize = getattr(getattr(v.aval, "dtype", None), "itemsize", 1)
    return Value(tuple(getattr(v.aval, "shape", ())), itemsize, source, tuple(sorted(set(readers), key=str)))
