"""Test ops against PyTorch, and against themselves on many devices and compiled, from one spec per op.

A spec is a function that draws one call; everything else follows from it (`cases` lists what is tested)::

    from tests.support.generate import call
    from tests.op_specs.engine import op

    @op("cumsum logcumsumexp")                       # one name, or several that are called alike
    def _(g):
        x = g.tensor(min_dim=1)                      # `tests.support.generate` lists what a `Gen` draws
        return call(x, dim=g.dim(x))

Options of `op`: ``reference=lambda torch: fn`` for names that PyTorch lacks, ``grad=False``, ``double=False``,
``tol={"float32": 1e-4}``, ``traced=False`` (shape depends on values), ``layouts=False``, ``check=fn`` (properties of
random results), each with ``reason=``; ``same("absolute", of="abs")`` adds an alias. What differs on purpose is said by
`excuse`.
"""

from .compare import Different as Different
from .excuses import Excuse as Excuse
from .excuses import excuse as excuse
from .spec import SPECS as SPECS
from .spec import Spec as Spec
from .spec import op as op
from .spec import register as register
from .spec import same as same
