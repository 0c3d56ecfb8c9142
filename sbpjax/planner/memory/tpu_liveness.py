"""What the TPU compiler holds: results of products, and copies in other tiles.

Take attention's ``softmax(q · k) · v`` with 16 heads and 2,048 tokens in bfloat16: the products ``q · k`` are 134 MB.
A plan counts three more values of that size where nothing is computed twice: the exponentials, the quotients, and the
quotients again for the gradient of ``v``. The TPU compiler keeps the products ``q · k`` alone; a product takes the
pointwise equations before it into its own loop, dear ones such as exp and tanh too, in the backward once more.

Memory is in tiles of 8 rows by 128 lanes. A table of ``(500,000, 64)`` float32 would be half empty, so it lies turned,
128 MB. Rows are looked up in a copy that is not turned, and come to a block that is not:

    200,000 rows of 64 looked up    256.0 + 102.4 MB     what libtpu's compiler says: 358.4
    200,000 rows of 32 looked up             25.6 MB     read as they lie, and slowly: 25.6

Sums into a table of 500,000 such rows are made in one that is not turned, 256 MB, of rows that are not.

What only products at the default precision read is rounded to bfloat16 where it is looked up, and so is the copy of the
table that is gathered for that: 4,000,000 rows of 64 over eight chips are 512 MB as they arrive and 1,024 MB in rows,
not twice that.

A sum over ranks whose result is cut along the lanes is summed as a whole first, then cut: the whole is held, too.
"""

from __future__ import annotations

import math
from collections import defaultdict

from jax.extend.core import Var

from sbpjax.planner.prices.local_work import is_added_in_rows
from sbpjax.planner.prices.lookups import is_lookup, is_rounded
from sbpjax.programs.primitives import COSTLY, LIGHT, PRODUCTS
from sbpjax.sbp import boxing
from sbpjax.sbp.layout import local_shape
from sbpjax.sbp.tpu_tiles import BF16_BYTES, in_tiles, is_turned

from .liveness import READS_BUFFERS, Spans

_WHOLE = READS_BUFFERS - PRODUCTS
_NARROW_BYTES = 256  # rows of less are read as they lie


class OnTpu(Spans):
    """`Spans` as the TPU compiler has them."""

    def _find_stored(self) -> set:
        stored: set = set()
        for eqn in self.program.eqns:
            name = eqn.primitive.name
            if name not in LIGHT and name not in COSTLY:
                stored.update(eqn.outvars)
            if name in _WHOLE:
                stored.update(self._behind_aliases(v) for v in eqn.invars if isinstance(v, Var))
        return stored

    def _walk(self) -> None:
        self._copied: dict[int, int] = defaultdict(int)  # equation → bytes held for it alone
        self._rounded = self._lookups_for_products()
        super()._walk()
        for i, eqn in enumerate(self.program.eqns):
            if eqn.primitive.name == "gather":
                ins, outs = (self.plan.ins(i), self.plan.outs(i)) if self.plan else (((), ()), ((),))
                item = BF16_BYTES if i in self._rounded else eqn.outvars[0].aval.dtype.itemsize
                self._copied[i] += self._looked_up(eqn.invars[0], ins[0], eqn.outvars[0], outs[0], item)
            elif eqn.primitive.name == "scatter-add":
                ins, outs = (self.plan.ins(i), self.plan.outs(i)) if self.plan else (((),) * 3, ((),))
                self._copied[i] += self._added(eqn.outvars[0], outs[0], eqn.invars[2], ins[2])
        for i, count in self._copied.items():
            self._inner[i] = self._inner.get(i, 0) + count

    def _lookups_for_products(self) -> set[int]:
        """Return the lookups of float32 whose rows nothing but products at the default precision reads."""
        readers: dict = defaultdict(list)
        for eqn in self.program.eqns:
            for v in eqn.invars:
                if isinstance(v, Var):
                    readers[v].append(eqn)
        for v in self.program.outvars:
            if isinstance(v, Var):
                readers[v].append(None)

        def read(v) -> list:
            return [(eqn, eqn and eqn.outvars[0]) for eqn in readers[v]]

        found = set()
        for i, eqn in enumerate(self.program.eqns):
            if is_lookup(eqn) and is_rounded(eqn.outvars[0], read):
                found.add(i)
        return found

    def _added(self, table, table_codes, rows, rows_codes) -> int:
        """Return the bytes of the sums as they are made where that is in rows, and of what the rows take beyond."""
        shape, item = local_shape(table.aval.shape, table_codes, self.sizes), table.aval.dtype.itemsize
        if not is_added_in_rows(shape, item):
            return 0
        added = local_shape(rows.aval.shape, rows_codes, self.sizes)
        padded = in_tiles((math.prod(added[:-1]), added[-1]), item)
        return in_tiles(shape, item) + padded - math.prod(added) * item

    def _looked_up(self, table, table_codes, rows, rows_codes, item: int) -> int:
        """Return the bytes of a lookup next to its operand and its result, which are counted as they lie at rest.

        Args:
            table: what is looked up in.
            table_codes: how it lies.
            rows: the result.
            rows_codes: how it lies.
            item: bytes of a number as it is looked up.
        """
        shape, full = local_shape(table.aval.shape, table_codes, self.sizes), table.aval.dtype.itemsize
        if not is_turned(shape, full) or shape[-1] * full < _NARROW_BYTES:
            return 0
        found = local_shape(rows.aval.shape, rows_codes, self.sizes)
        return in_tiles(shape, item) + in_tiles(found, item) - math.prod(found) * full

    def _read(self, copies, v, codes, i: int) -> None:
        if codes not in copies.known[v]:
            source, shape, item = copies.source(v, codes), v.aval.shape, v.aval.dtype.itemsize
            for step in boxing.path(shape, item, self.sizes, source, codes):
                held = local_shape(shape, source[: step.axis] + (-1,) + source[step.axis + 1 :], self.sizes)
                lanes = len(held) - 1 - is_turned(held, item)
                if step.kind == "psum_scatter" and step.target == lanes:
                    self._copied[i] += math.prod(held) * item
                source = source[: step.axis] + (step.target,) + source[step.axis + 1 :]
        is_new = (v, codes) not in self._copies
        super()._read(copies, v, codes, i)
        if is_new and (v, codes) in self._copies and i in self._rounded:
            self._bytes[v, codes] = self._bytes[v, codes] * BF16_BYTES // v.aval.dtype.itemsize
