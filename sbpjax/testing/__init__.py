"""Test ops against PyTorch, and against themselves on many devices and compiled, from one spec per op.

    import sbpjax.testing
    sbpjax.testing.check("cumsum", seed=3, cases=5)
    python -m sbpjax.testing --specs tests.op_specs cumsum --seed 3 --cases 20

A spec is a function that draws one call; everything else follows from it (`forms` lists what is tested)::

    from sbpjax.testing import call, op

    @op("cumsum logcumsumexp")                       # one name, or several that are called alike
    def _(g):
        x = g.tensor(min_dim=1)                      # shape, dtype, values and strides are drawn; first is simplest
        return call(x, dim=g.dim(x))

`Gen` (`g`) draws: ``g.tensor(shape, kinds="fic", low=, high=, special=True, grad=False, min_dim=, max_dim=,
empty=False)``, ``g.like(x)`` (broadcasts with x), ``g.index(shape, size)``, ``g.dim(x)``, ``g.dims(x)``,
``g.flag()``, ``g.pick(a, b, …)``, ``g.maybe(beta=0.5)`` (keywords that may be absent), ``g.dtype("fi")``. Options of
`op`: ``reference=lambda torch: fn`` for names that PyTorch lacks, ``grad=False``, ``double=False``, ``tol={"float32":
1e-4}``, ``traced=False`` (shape depends on values), ``layouts=False``, ``check=fn`` (properties of random results),
each with ``reason=``; ``same("absolute", of="abs")`` adds an alias. What differs on purpose is said by `excuse`. The
specs of sbpjax's own ops are in its repository, `tests/op_specs`; a user's own go into any module.
"""

from .check import CheckError as CheckError
from .check import check as check
from .check import names as names
from .close import assert_close as assert_close
from .compare import Different as Different
from .excuses import Excuse as Excuse
from .excuses import excuse as excuse
from .generate import Call as Call
from .generate import Dtype as Dtype
from .generate import Gen as Gen
from .generate import Input as Input
from .generate import call as call
from .spec import SPECS as SPECS
from .spec import Spec as Spec
from .spec import op as op
from .spec import register as register
from .spec import same as same
