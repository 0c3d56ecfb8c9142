"""Peak memory on XLA:CPU, which fuses less and so stores more than compilers for accelerators.

Take ``gelu(x) = x · (1 + erf(x / √2)) / 2`` between two products. A plan counts ``x`` as saved for the backward, which
recomputes the rest from it. XLA:CPU keeps three values: ``x``, the erf, and the result, which the gradient of the next
weight reads.

* A value that is computed twice from the same operands is computed once and kept, unless a barrier prevents it.
* A reduction reads buffers: it takes one pointwise equation in, whose operands are stored. So a layer norm keeps the
  centred and the scaled values.
* A pointwise value of two others that forward and backward read is stored; one of a single other value (times a number,
  plus a row) is recomputed where it is read, so its readers read that other one.
* Layers that run as calls of one function (`_core.programs.outline`) are separate: nothing is shared between them, and
  everything that the backward reads of the forward is stored.
* A product reads an operand whose dims are in another order from a transposed copy: the gradient of a weight that sums
  over batch and time transposes its first operand. Of a GPT's head that is one more block of the logits' size.
"""

from __future__ import annotations

import math
from collections import defaultdict

from sbpjax._core.jax_private import Literal, Var
from sbpjax._core.programs.primitives import BROADCASTS, COSTLY, LIGHT, LOOPS, MOVES, REDUCTIONS, WINDOWS
from sbpjax._core.programs.repeated_layers import layer_loops
from sbpjax.sbp.layout import local_shape

from .liveness import Spans
from .tpu_liveness import TpuSpans

_WHERE_READ = BROADCASTS | MOVES | {"optimization_barrier"}
_REDUCTIONS = REDUCTIONS | WINDOWS


def spans_on(device: str, program) -> type[Spans]:
    """Return the `Spans` of a program for the compiler of a type of device."""
    if device == "tpu":
        return TpuSpans
    rolled = any(eqn.primitive.name in LOOPS for eqn in program.eqns)  # the results of a loop are stacks
    return CpuSpans if device == "cpu" and not rolled else Spans


class CpuSpans(Spans):
    """`Spans` as XLA:CPU has them."""

    def _walk(self) -> None:
        super()._walk()
        spans: dict = defaultdict(list)
        for (v, codes), span in self._span.items():
            if (v, codes) not in self._copies:
                spans[v].append(span)
        for i, eqn in enumerate(self.program.eqns):
            if eqn.primitive.name == "dot_general":
                ins = self.plan.ins(i) if self.plan else ((), ())
                for v, codes, dims in zip(eqn.invars, ins, _wanted_orders(eqn), strict=True):
                    self._transpose(i, v, codes, dims, spans)

    def _transpose(self, i: int, v, codes, dims: list[int], spans: dict) -> None:
        """Count the transposed copy of a product's operand whose dims are in another order than the product reads."""
        # A pointwise operand is computed once more into the copy, so its own operands live until then.
        shape = local_shape(v.aval.shape, codes, self.sizes)
        wide = [d for d in dims if shape[d] > 1]
        if wide == sorted(wide):
            return
        self._inner[i] = self._inner.get(i, 0) + math.prod(shape) * v.aval.dtype.itemsize
        # A product or a lookup has a buffer of its own, from which the copy is made.
        maker = self._producer.get(v)
        if maker is None or self._name(v) not in LIGHT or (v, codes) in self._copies:
            return
        for u in self.program.eqns[maker].invars:
            for root in self.roots(u) if isinstance(u, Var) else ():
                for span in spans[root]:
                    span[1] = max(span[1], i)

    def _find_stored(self) -> set:
        self._calls = next(iter(layer_loops(self.program)), None) is not None
        # XLA does not merge equal equations of two calls, nor of a call and its surroundings.
        self._same = {} if self._calls else _merge_equal(self.program.eqns)
        self._carriers: dict = {}
        stored = {v for v in super()._find_stored() if v not in self._same}
        return stored | (self._forward_values_read() if self._calls else self._shared_values())

    def roots(self, v) -> frozenset:
        """Return the stored values that a value is computed from; itself if it is one."""
        return super().roots(self._same.get(v, v))

    def _extend(self, copies, v, codes, i: int) -> None:
        super()._extend(copies, v, codes, i)
        eqns = self.program.eqns
        if not self._calls and i < len(eqns) and eqns[i].primitive.name in LIGHT | COSTLY:
            carrier = self._carrier(v)
            if carrier is not v and carrier in copies.known:
                super()._extend(copies, carrier, codes, i)

    def _forward_values_read(self) -> set:
        """Return the values of the forward that the backward reads."""
        first = self.backward[0]
        read = {v for e in self.program.eqns[first:] for v in e.invars if isinstance(v, Var)}
        return {v for v in read if self._producer.get(v, first) < first and self._name(v) not in _WHERE_READ}

    def _shared_values(self) -> set:
        """Return the pointwise values that have a buffer because of their readers."""
        stored: set = set()
        readers: dict = defaultdict(set)
        count: dict = defaultdict(int)
        reduced = []
        for i, eqn in enumerate(self.program.eqns):
            if any(v in self._same for v in eqn.outvars):
                continue
            operands = [self._same.get(v, v) for v in eqn.invars if isinstance(v, Var)]
            if self._single(eqn) is None:
                for v in operands:
                    readers[self._carrier(v)].add(i)
            if eqn.primitive.name not in MOVES:
                for v in operands:
                    count[self._resolve_alias(v)] += 1
            if eqn.primitive.name in _REDUCTIONS:
                reduced += [self._resolve_alias(v) for v in operands[:1]]
        for v in reduced:
            stored.update([v] if count[v] > 1 else self._before_reduction(v))
        first = self.backward[0]
        for v, who in readers.items():
            name = self._name(v)
            if len(who) > 1 and name in COSTLY:
                stored.add(v)
            # XLA:CPU does not reach back over the whole forward for a value that it could compute again.
            elif name in LIGHT and name not in _WHERE_READ and min(who) < first <= max(who):
                stored.add(v)
        return stored

    def _name(self, v) -> str:
        i = self._producer.get(v)
        return "" if i is None else self.program.eqns[i].primitive.name

    def _before_reduction(self, v) -> list:
        i = self._producer.get(v)
        if i is None or self._name(v) not in LIGHT or self._name(v) in _WHERE_READ:
            return [v]
        operands = [self._same.get(u, u) for u in self.program.eqns[i].invars if isinstance(u, Var)]
        return [self._resolve_alias(u) for u in operands if u.aval.shape == v.aval.shape and not self._is_spread(u)]

    def _is_spread(self, v) -> bool:
        return self._name(self._resolve_alias(v)) in BROADCASTS

    def _single(self, eqn):
        """Return the only operand of a pointwise equation, None if it has more."""
        if eqn.primitive.name in MOVES:
            return eqn.invars[0] if isinstance(eqn.invars[0], Var) else None
        name = eqn.primitive.name
        # A quotient of two whole values reads both where it is made; by a number or a row it is like a product.
        if name == "div" and isinstance(eqn.invars[1], Var) and not self._is_spread(eqn.invars[1]):
            return None
        if name not in LIGHT and name != "div" or len(eqn.outvars) != 1 or name in _WHERE_READ:
            return None
        operands = [self._same.get(u, u) for u in eqn.invars if isinstance(u, Var)]
        whole = {u for u in operands if u.aval.shape == eqn.outvars[0].aval.shape and not self._is_spread(u)}
        return whole.pop() if len(whole) == 1 else None

    def _carrier(self, v):
        """Return the value that is read where ``v`` is."""
        found = self._carriers.get(v)
        if found is None:
            i = self._producer.get(v)
            before = None if i is None else self._single(self.program.eqns[i])
            found = self._carriers[v] = v if before is None else self._carrier(self._same.get(before, before))
        return found


def _wanted_orders(eqn) -> list[list[int]]:
    """Return the order in which a product reads the dims of each operand."""
    # Dims that are common to both come first. Where several are summed over, they become one: the last of the first
    # operand, the first or last of the other; a single one may be anywhere.
    (left, right), (left_batch, right_batch) = eqn.params["dimension_numbers"]
    orders = []
    for v, summed, batch in zip(eqn.invars, ((), ()) if len(left) == 1 else (left, ()), (left_batch, right_batch)):
        rest = [d for d in range(v.aval.ndim) if d not in (*summed, *batch)]
        orders.append([*batch, *rest, *summed])
    return orders


def _merge_equal(eqns) -> dict:
    """Return variable → the earlier variable that has the same value, of pointwise equations that are there twice."""
    same: dict = {}
    seen: dict = {}
    for eqn in eqns:
        name = eqn.primitive.name
        if name not in LIGHT and name not in COSTLY and name not in _REDUCTIONS:
            continue
        # A barrier keeps two equal values apart: checkpointing puts it before the recomputation.
        if name == "optimization_barrier" or len(eqn.outvars) != 1 or eqn.effects:
            continue
        operands = [(str(v.val), str(v.aval)) if isinstance(v, Literal) else same.get(v, v) for v in eqn.invars]
        key = (name, *operands, *sorted((k, str(p)) for k, p in eqn.params.items()))
        first = seen.setdefault(key, eqn.outvars[0])
        if first is not eqn.outvars[0]:
            same[eqn.outvars[0]] = first
    return same
