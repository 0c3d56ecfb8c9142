"""What the TPU compiler holds: results of products, and no pointwise value between them.

Take attention's ``softmax(q · k) · v`` with 16 heads and 2,048 tokens in bfloat16: the products ``q · k`` are 134 MB.
A plan counts three more values of that size where nothing is computed twice: the exponentials, the quotients, and the
quotients again for the gradient of ``v``. The TPU compiler keeps the products ``q · k`` alone; a product takes the
pointwise equations before it into its own loop, dear ones such as exp and tanh too, in the backward once more.
"""

from __future__ import annotations

from jax.extend.core import Var

from .liveness import COSTLY, LIGHT, READS_BUFFERS, Spans

_TAKES_IN = ("dot_general", "conv_general_dilated")
_WHOLE = tuple(name for name in READS_BUFFERS if name not in _TAKES_IN)


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
