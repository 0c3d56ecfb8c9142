"""Peak memory under the TPU compiler, which fuses pointwise work into products and copies arrays to other tilings.

Take attention's ``softmax(q · k) · v`` with 16 heads and 2,048 tokens in bfloat16: the products ``q · k`` are 134 MB. A
plan counts three more values of that size where nothing is computed twice: the exponentials, the quotients, and the
quotients again for the gradient of ``v``. The TPU compiler keeps the products ``q · k`` alone; a product fuses the
pointwise equations before it into its own loop, expensive ones such as exp and tanh too, in the backward once more.

Memory is in tiles of 8 rows by 128 lanes. A table of ``(500,000, 64)`` float32 would be half empty, so it is stored
transposed, 128 MB. Rows are looked up in an untransposed copy, into an untransposed block:

    200,000 rows of 64 looked up    256.0 + 102.4 MB     libtpu's compiler reports 358.4
    200,000 rows of 32 looked up             25.6 MB     read in place, and slowly: 25.6

Sums into a table of 500,000 such rows are made in one that is not transposed, 256 MB, of rows that are not.
"""

from __future__ import annotations

import math

from sbpjax._core.jax_private import Var
from sbpjax._core.planner.prices.local_work import is_added_in_rows
from sbpjax._core.programs.primitives import COSTLY, LIGHT, PRODUCTS
from sbpjax.sbp.layout import local_shape
from sbpjax.sbp.tpu_tiles import in_tiles, is_transposed

from .liveness import READS_BUFFERS, Spans

_WHOLE = READS_BUFFERS - PRODUCTS
_NARROW_BYTES = 256  # smaller rows are read in place


class TpuSpans(Spans):
    """`Spans` as the TPU compiler has them."""

    def _find_stored(self) -> set:
        stored: set = set()
        for eqn in self.program.eqns:
            name = eqn.primitive.name
            if name not in LIGHT and name not in COSTLY:
                stored.update(eqn.outvars)
            if name in _WHOLE:
                stored.update(self._resolve_alias(v) for v in eqn.invars if isinstance(v, Var))
        return stored

    def _walk(self) -> None:
        super()._walk()
        for i, eqn in enumerate(self.program.eqns):
            ins, outs = (self.plan.ins(i), self.plan.outs(i)) if self.plan and eqn.invars else (((),) * 3, ((),))
            copied = 0  # bytes held for the equation alone
            if eqn.primitive.name == "gather":
                copied = self._lookup_bytes(eqn.invars[0], ins[0], eqn.outvars[0], outs[0])
            elif eqn.primitive.name == "scatter-add":
                copied = self._row_sum_bytes(eqn.outvars[0], outs[0], eqn.invars[2], ins[2])
            if copied:
                self._inner[i] = self._inner.get(i, 0) + copied

    def _row_sum_bytes(self, table, table_codes, rows, rows_codes) -> int:
        """Return the bytes of sums that are computed in rows, and the extra bytes of the rows."""
        shape, item = local_shape(table.aval.shape, table_codes, self.sizes), table.aval.dtype.itemsize
        if not is_added_in_rows(shape, item):
            return 0
        added = local_shape(rows.aval.shape, rows_codes, self.sizes)
        padded = in_tiles((math.prod(added[:-1]), added[-1]), item)
        return in_tiles(shape, item) + padded - math.prod(added) * item

    def _lookup_bytes(self, table, table_codes, rows, rows_codes) -> int:
        """Return the bytes of a lookup next to its operand and its result, which are counted as they are stored."""
        shape, item = local_shape(table.aval.shape, table_codes, self.sizes), table.aval.dtype.itemsize
        if not is_transposed(shape, item) or shape[-1] * item < _NARROW_BYTES:
            return 0
        found = local_shape(rows.aval.shape, rows_codes, self.sizes)
        # Where only products read the rows, libtpu 0.0.42 makes this copy in bfloat16. It is counted in full: the
        # estimate then errs on the safe side more often than not.
        return in_tiles(shape, item) + in_tiles(found, item) - math.prod(found) * item
