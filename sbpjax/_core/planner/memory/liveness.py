"""Peak memory of a planned program, estimated from the plan before anything is compiled.

For ``loss = f(w2, tanh(w1 x))`` the forward keeps ``x`` and the tanh for the backward, the backward makes two gradients
that wait for the update, and a gathered copy of a split ``w1`` may live from its first to its last reader. The program
is walked in order, with the bytes of one device under the plan's layouts; the live bytes at the peak are the estimate.

The compiler fuses: a pointwise chain is not stored between its ends. So a *light* value (pointwise, broadcast, a cast)
counts as the values that it is computed from, unless an equation that reads whole buffers (a product, a gather, a loop,
a collective) wants it, or it is costly and read twice. That is an estimate; `_core.inspect.memory` reads the compiler's
own figure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

from sbpjax._core.jax_private import Var
from sbpjax._core.planner.control import body_plans, body_program
from sbpjax._core.programs.normalise import is_backward
from sbpjax._core.programs.plan import Copies
from sbpjax._core.programs.primitives import (
    CONTROL,
    COSTLY,
    CUMULATIVE,
    DYNAMIC,
    KERNELS,
    LIGHT,
    LOOPS,
    MOVES,
    PRODUCTS,
    ROW_UPDATES,
    SCATTERS,
    SELECTIONS,
    WINDOW_SELECTIONS,
    WINDOWS,
)
from sbpjax.sbp import boxing
from sbpjax.sbp.layout import local_shape

READS_BUFFERS = (
    (PRODUCTS | SCATTERS | SELECTIONS | CONTROL | CUMULATIVE | DYNAMIC | WINDOWS | WINDOW_SELECTIONS | KERNELS)
    | {"gather", "sort"}
    | ROW_UPDATES
)
# Written over their first operand, where nothing reads that any more.
_WRITE_OVER = SCATTERS | {"dynamic_update_slice"}


@dataclass(frozen=True)
class LiveBytes:
    """Bytes on one device at the peak of a program, next to its arguments.

    Attributes:
        activations: made by the forward and read by the backward.
        gathered: copies of arguments in another layout.
        gradients: made by the backward and read by the update.
        temporaries: everything else.
    """

    activations: int = 0
    gathered: int = 0
    gradients: int = 0
    temporaries: int = 0

    @property
    def total(self) -> int:
        """The sum of all kinds."""
        return self.activations + self.gathered + self.gradients + self.temporaries


def _is_backward(eqn) -> bool:
    """Return whether an equation, or one inside it, is part of a backward."""
    if is_backward(eqn):
        return True
    inner = [p for p in eqn.params.values() if hasattr(p, "jaxpr") or hasattr(p, "eqns")]
    return any(_is_backward(e) for p in inner for e in getattr(p, "jaxpr", p).eqns)


class Spans:
    """Live ranges of the buffers of a program.

    Attributes:
        backward: the first and the last equation of the backward; beyond the end without one.
    """

    def __init__(self, program, plan=None) -> None:
        self.program, self.plan = program, plan
        self.sizes = () if plan is None else plan.sizes
        marks = [i for i, e in enumerate(program.eqns) if _is_backward(e)]
        self.backward = (marks[0], marks[-1]) if marks else (len(program.eqns), len(program.eqns))
        self._producer = {v: i for i, e in enumerate(program.eqns) for v in e.outvars}
        self._stored = self._find_stored()
        self._roots: dict = {}
        self._bytes: dict = {}
        self._span: dict = {}  # (variable, codes) → [born, last read]
        self._copies: set = set()
        self._inner: dict[int, int] = {}
        self._walk()

    # -- which values have a buffer --------------------------------------------------------------------------------

    def _find_stored(self) -> set:
        stored: set = set()
        readers: dict = defaultdict(set)
        for i, eqn in enumerate(self.program.eqns):
            name = eqn.primitive.name
            if name not in LIGHT and name not in COSTLY:
                stored.update(eqn.outvars)
            for v in eqn.invars:
                if isinstance(v, Var):
                    readers[v].add(i)
            if name in READS_BUFFERS:
                stored.update(self._resolve_alias(v) for v in eqn.invars if isinstance(v, Var))
        for v, who in readers.items():
            i = self._producer.get(v)
            # Compilers compute a cheap value again for each reader, and keep one with an exp in it.
            if i is not None and len(who) > 1 and self.program.eqns[i].primitive.name in COSTLY:
                stored.add(v)
        return stored

    def _resolve_alias(self, v):
        i = self._producer.get(v)
        while i is not None and self.program.eqns[i].primitive.name in MOVES:
            inner = self.program.eqns[i].invars[0]
            if not isinstance(inner, Var):
                break
            v, i = inner, self._producer.get(inner)
        return v

    def roots(self, v) -> frozenset:
        """Return the stored values that a value is computed from; itself if it is one."""
        found = self._roots.get(v)
        if found is None:
            i = self._producer.get(v)
            if i is None or v in self._stored:
                found = frozenset((v,))
            else:
                parts = [self.roots(u) for u in self.program.eqns[i].invars if isinstance(u, Var)]
                found = frozenset().union(*parts)
            self._roots[v] = found
        return found

    # -- live ranges -----------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        program, plan = self.program, self.plan
        # The bookkeeping of the lowering is reused: the copy that each reader takes, and its lifetime.
        copies = Copies(self.sizes)
        for k, v in enumerate(program.invars):
            copies.put(v, plan.in_codes[k] if plan else ())
        for v in program.consts:
            copies.put(v, (-1,) * len(self.sizes))
        for i, eqn in enumerate(program.eqns):
            ins = plan.ins(i) if plan and eqn.invars else ((),) * len(eqn.invars)
            outs = plan.outs(i) if plan and eqn.outvars else ((),) * len(eqn.outvars)
            for v, codes in zip(eqn.invars, ins, strict=True):
                if isinstance(v, Var):
                    self._read(copies, v, codes, i)
            for v, codes in zip(eqn.outvars, outs, strict=True):
                copies.put(v, codes)
                self._bytes[v, codes] = self._size(v, codes)
                if v in self._stored:
                    self._span[v, codes] = [i, i]
            if eqn.primitive.name in LOOPS:
                self._inner[i] = self._peak_inside(i, eqn)
        end = len(program.eqns)
        for k, v in enumerate(program.outvars):
            if isinstance(v, Var):
                self._read(copies, v, plan.out_codes[k] if plan else (), end)
        self._end_overwritten()

    def _end_overwritten(self) -> None:
        """End the live range of buffers where they are overwritten, such as the zeros of a table's gradient."""
        for i, eqn in enumerate(self.program.eqns):
            if eqn.primitive.name in _WRITE_OVER and isinstance(eqn.invars[0], Var):
                codes = self.plan.ins(i)[0] if self.plan else ()
                span = self._span.get((self._resolve_alias(eqn.invars[0]), codes))
                # Only if nothing reads it after the equation: else the compiler copies it first.
                if span is not None and span[1] == i:
                    span[1] = i - 1

    def _read(self, copies: Copies, v, codes, i: int) -> None:
        if codes not in copies.known[v]:
            source = copies.source(v, codes)
            steps = boxing.path(v.aval.shape, v.aval.dtype.itemsize, self.sizes, source, codes)
            copies.known[v][codes] = None
            self._bytes[v, codes] = self._size(v, codes)
            # A slice is taken where it is read, and a broadcast value has its part at hand.
            if any(s.bytes for s in steps):
                self._span[v, codes] = [i, i]
                self._copies.add((v, codes))
                self._extend(copies, v, source, i)
        self._extend(copies, v, codes, i)

    def _extend(self, copies: Copies, v, codes, i: int) -> None:
        """Note that a value, or its stored operands, is read in a layout."""
        if (v, codes) in self._span:
            self._span[v, codes][1] = i
            return
        for root in self.roots(v):
            for known in copies.known.get(root, ()):
                if (root, known) in self._span and (root, known) not in self._copies:
                    self._span[root, known][1] = i

    def _size(self, v, codes) -> int:
        shape = getattr(v.aval, "shape", ())
        item = getattr(v.aval.dtype, "itemsize", 4) if hasattr(v.aval, "dtype") else 0
        return math.prod(local_shape(shape, codes, self.sizes)) * item

    def _peak_inside(self, i: int, eqn) -> int:
        if self.plan is None:
            key = "jaxpr" if eqn.primitive.name == "scan" else "body_jaxpr"
            return peak(body_program(eqn.params[key])).total
        body = self.plan.bodies.get(i)
        # A loop that was one equation to the planner has no plan of its own body here.
        if body is None:
            body = body_plans(eqn, self.sizes, self.plan.ins(i), self.plan.outs(i))[-1]
        return peak(body.program, body).total

    # -- the peak --------------------------------------------------------------------------------------------------

    def kind(self, v, codes) -> str:
        """Return the field of `LiveBytes` that counts a buffer."""
        born, last = self._span[v, codes]
        first, final = self.backward
        if (v, codes) in self._copies and v not in self._producer:
            return "gathered"
        if born < first <= last:
            return "activations"
        if first <= born <= final < last:
            return "gradients"
        return "temporaries"

    def _buffers(self):
        outputs = {v for v in self.program.outvars if isinstance(v, Var)}
        for (v, codes), (born, last) in self._span.items():
            if v in outputs and last == len(self.program.eqns):
                continue  # it is written where the result goes
            yield v, codes, born, last

    def find_peak(self) -> tuple[int, int]:
        """Return the equation with the most live bytes, and the bytes."""
        end = len(self.program.eqns) + 1
        changes = [0] * (end + 1)
        for v, codes, born, last in self._buffers():
            changes[born] += self._bytes[v, codes]
            changes[min(last, end - 1) + 1] -= self._bytes[v, codes]
        live, best, when = 0, -1, 0
        for i, change in enumerate(changes[:end]):
            live += change
            if live + self._inner.get(i, 0) > best:
                best, when = live + self._inner.get(i, 0), i
        return when, best

    def live_at(self, when: int) -> set:
        """Return the variables that are live at an equation, next to the arguments."""
        return {v for v, _, born, last in self._buffers() if born <= when <= last}

    def at_peak(self) -> LiveBytes:
        """Return the live bytes at the peak."""
        when, _ = self.find_peak()
        live: dict = defaultdict(int)
        for v, codes, born, last in self._buffers():
            if born <= when <= last:
                live[self.kind(v, codes)] += self._bytes[v, codes]
        live["temporaries"] += self._inner.get(when, 0)
        return LiveBytes(**live)

    def total_by_kind(self) -> LiveBytes:
        """Return the sizes of everything that is ever live, by kind; not all at the same time."""
        live: dict = defaultdict(int)
        for v, codes, _, _ in self._buffers():
            live[self.kind(v, codes)] += self._bytes[v, codes]
        return LiveBytes(**live)


def peak(program, plan=None) -> LiveBytes:
    """Return the peak memory of a program without its arguments."""
    return Spans(program, plan).at_peak()
