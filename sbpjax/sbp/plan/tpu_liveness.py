"""What the TPU compiler holds: results of products, and copies in other tiles.

Take attention's ``softmax(q · k) · v`` with 16 heads and 2,048 tokens in bfloat16: the products ``q · k`` are 134 MB.
A plan counts three more values of that size where nothing is computed twice: the exponentials, the quotients, and the
quotients again for the gradient of ``v``. The TPU compiler keeps the products ``q · k`` alone; a product takes the
pointwise equations before it into its own loop, dear ones such as exp and tanh too, in the backward once more.

Memory is in tiles of 8 rows by 128 lanes. A table of ``(500,000, 64)`` float32 would be half empty, so it lies turned,
128 MB. Rows are looked up in a copy that is not turned, and come to a block that is not:

    200,000 rows of 64 looked up    256.0 + 102.4 MB     what libtpu's compiler says: 358.4
    200,000 rows of 32 looked up             25.6 MB     read as they lie, and slowly: 25.6

A sum over ranks whose result is cut along the lanes is summed as a whole first, then cut: the whole is held, too.
"""

from __future__ import annotations

import math
from collections import defaultdict

from jax.extend.core import Var

from .. import boxing
from ..layout import local_shape
from ..tiles import in_tiles, is_turned
from .liveness import COSTLY, LIGHT, READS_BUFFERS, Spans

_TAKES_IN = ("dot_general", "conv_general_dilated")
_WHOLE = tuple(name for name in READS_BUFFERS if name not in _TAKES_IN)
_NARROW_BYTES = 256  # rows of less are read as they lie


class OnTpu(Spans):
    """`Spans` as the TPU compiler has them."""

    def _find_stored(self) -> set:
        stored: set = set()
        for eqn in self.program.eqns:
            name = eqn.primitive.name
            if name not in LIGHT and name not in COSTLY:
                stored.update(eqn.outvars)
            if name.startswith(_WHOLE):
                stored.update(self._behind_aliases(v) for v in eqn.invars if isinstance(v, Var))
        return stored

    def _walk(self) -> None:
        self._copied: dict[int, int] = defaultdict(int)  # equation → bytes held for it alone
        super()._walk()
        for i, eqn in enumerate(self.program.eqns):
            if eqn.primitive.name == "gather":
                ins, outs = (self.plan.ins(i), self.plan.outs(i)) if self.plan else (((), ()), ((),))
                self._copied[i] += self._looked_up(eqn.invars[0], ins[0], eqn.outvars[0], outs[0])
        for i, count in self._copied.items():
            self._inner[i] = self._inner.get(i, 0) + count

    def _looked_up(self, table, table_codes, rows, rows_codes) -> int:
        """Return the bytes of a lookup next to its operand and its result, which are counted as they lie at rest."""
        shape, item = local_shape(table.aval.shape, table_codes, self.sizes), table.aval.dtype.itemsize
        if not is_turned(shape, item) or shape[-1] * item < _NARROW_BYTES:
            return 0
        found = local_shape(rows.aval.shape, rows_codes, self.sizes)
        return in_tiles(shape, item) + in_tiles(found, item) - math.prod(found) * item

    def _read(self, copies, v, codes, i: int) -> None:
        if codes not in copies.known[v]:
            source, shape, item = copies.source(v, codes), v.aval.shape, v.aval.dtype.itemsize
            for step in boxing.path(shape, item, self.sizes, source, codes):
                held = local_shape(shape, source[: step.axis] + (-1,) + source[step.axis + 1 :], self.sizes)
                lanes = len(held) - 1 - is_turned(held, item)
                if step.kind == "psum_scatter" and step.target == lanes:
                    self._copied[i] += math.prod(held) * item
                source = source[: step.axis] + (step.target,) + source[step.axis + 1 :]
        super()._read(copies, v, codes, i)
