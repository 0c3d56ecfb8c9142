"""Fusion barrier for XLA:CPU: a part of a program whose loops are not fused with others.

XLA:CPU (jaxlib 0.10) computes additions and products anew in each loop that reads them, however many they are, and
drops every `optimization_barrier` before it fuses. A depthwise convolution is a sum of many products:

    y = x[0:n] w[0] + x[1:n+1] w[1] + …      one loop of 49 products an element, if nothing else is in it
    mean(y), y - mean(y), …                  five loops of a ConvNeXt block, each of 50

The result of a call is in memory before others read it, if the call is marked as not inlined.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax.experimental.xla_metadata import set_xla_metadata


def run_isolated(function: Callable, *operands):
    """Return a function's result of arrays (traced), computed by loops of its own.

    Args:
        function: gives one array.
        operands: its arguments.
    """
    (eqn,) = jax.make_jaxpr(jax.jit(function))(*operands).jaxpr.eqns
    # The mark is on the call alone: around the trace it would be on every operation of the function.
    with set_xla_metadata(inlineable="false"):
        (found,) = eqn.primitive.bind(*operands, **eqn.params)
    return found
