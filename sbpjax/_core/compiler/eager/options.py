"""XLA compiler options of local eager ops on CPU, for fast compilation of many small programs.

XLA:CPU (jaxlib 0.10) writes each fused loop as MLIR first, compiles it as an LLVM module of its own, and optimises that
at LLVM's second level. Without the MLIR, with one module per program and at the first level, programs of a convolution
take a fifth of the time to compile and those of a batch norm a third, and both run as fast (`benchmarks/cold_start.py`,
`benchmarks/eager_models.py`).

These are convolutions and batch norms, programs of pointwise arithmetic, and backwards that read images, or any array
of four dims or more. A backward is of one shape, and so is an optimizer's update. Other programs serve many shapes, and
their bits must not depend on which of them came first: convolutions, and pointwise arithmetic with one product, have
the same bits with both options (of `a * b + c * d` LLVM contracts either product, and `erf` and `rsqrt` of a vector
differ from a scalar's), a batch norm has these options for every shape. Programs with the primitives of `_SLOWER` keep
the usual options, since their loops run slower with these, a padding up to twice; so do those that draw random numbers,
which have the same bits in each layout, ops of 16-bit floats, and the programs of graphs, which are compiled once and
run for hours.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, JaxprEqn, jaxprs_in_params
from sbpjax._core.programs.primitives import CALLS, CHEAP, JITS, RANDOM, STEADY

QUICK: dict = {"xla_cpu_parallel_codegen_split_count": 1, "xla_backend_optimization_level": 1}
if jax.__version_info__ < (0, 11):  # jaxlib 0.12 refuses the option: it has no other way than the emitters
    QUICK["xla_cpu_use_fusion_emitters"] = False
_DIMS = 4
_SLOWER = frozenset(("pad", "transpose", "exp"))
_ARITHMETIC = CHEAP | STEADY | set(JITS) | set(CALLS) | {"broadcast_in_dim"}
_PRODUCTS = frozenset(("mul", "square", "integer_pow"))
_WIDE = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64", "bool")))


def options_of(name: str, closed: ClosedJaxpr) -> dict | None:
    """Return the compiler options of a local op, by its name and program; None for the usual ones."""
    if jax.default_backend() != "cpu":
        return None
    eqns = list(_eqns(closed.jaxpr))
    names = {eqn.primitive.name for eqn in eqns}
    inputs = [v.aval for v in closed.jaxpr.invars]
    backward = name.endswith("_backward")
    products = sum(eqn.primitive.name in _PRODUCTS for eqn in eqns)
    pointwise = names <= _ARITHMETIC and (backward or products <= 1)
    if pointwise and all(a.dtype in _WIDE for a in (*inputs, *(v.aval for e in eqns for v in e.outvars))):
        return QUICK
    if not name.startswith(("conv", "batch_norm")):
        if not backward or max((a.ndim for a in inputs), default=0) < _DIMS:
            return None
    return QUICK if (_SLOWER | RANDOM).isdisjoint(names) else None


def compiler_options_of_update(closed: ClosedJaxpr) -> dict | None:
    """Return the options of an optimizer's update, the same for all dtypes: one function serves several."""
    if jax.default_backend() != "cpu":
        return None
    return QUICK if all(eqn.primitive.name in _ARITHMETIC for eqn in _eqns(closed.jaxpr)) else None


def _eqns(jaxpr) -> Iterator[JaxprEqn]:
    """Yield the equations of a jaxpr, those of inner jaxprs too."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _eqns(inner)
