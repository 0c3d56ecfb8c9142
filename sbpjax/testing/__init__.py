"""Test utilities for ops: random inputs drawn from a seed, and comparison of results.

    from sbpjax.testing import Gen, assert_close

    g = Gen(3)                                   # a seed; the same one draws the same inputs
    x = g.tensor(min_dim=1)                      # shape, dtype, values and strides are drawn; first is simplest
    dim = g.dim(x)

`Gen` draws: ``g.tensor(shape, kinds="fic", low=, high=, special=True, grad=False, min_dim=, max_dim=, empty=False)``,
``g.like(x)`` (broadcasts with x), ``g.index(shape, size)``, ``g.dim(x)``, ``g.dims(x)``, ``g.flag()``,
``g.pick(a, b, …)``, ``g.maybe(beta=0.5)`` (keywords that may be absent), ``g.dtype("fi")``. An `Input` holds its value
as a NumPy array, ``x.value``.
"""

from .close import assert_close as assert_close
from .generate import Call as Call
from .generate import Dtype as Dtype
from .generate import Gen as Gen
from .generate import Input as Input
from .generate import call as call
