"""Traced calls: caches the equation of a `jit` call inside a trace, so that repeated calls cost little.

The trace of a 24-layer GPT makes some 500 calls of a few dozen ``jit`` functions: an op's forward, its backward, the
update of a parameter. JAX knows their jaxprs from the first call, but every further one takes 50 µs: it looks at the
arguments as if they came from a user, finds its own caches, infers the types of the results again. Here the equation
that the first call left in the program is kept under the types of its inputs, and written down again for others.

    first    run(x, w)  →  jit[jaxpr=…](x, w)  →  y        kept under (f32[8,64], f32[64,64])
    second   run(u, v)  →  the same equation on u, v

Both calls leave the same equation. Where an equation cannot be found (another kind of trace, a version of JAX
that has no `emit_eqn`) every call goes through ``jit``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer
from jax.tree_util import tree_flatten, tree_unflatten

from sbpjax._core.jax_private import DynamicJaxprTrace, config, core, source_info_util

_MAX_KEPT = 256  # kinds of arguments of one function
# No public name (jax 0.10). Where JAX has them no more, every call is traced: slower, and equal.
_CAN_EMIT = hasattr(DynamicJaxprTrace, "emit_eqn") and hasattr(DynamicJaxprTrace, "to_jaxpr_tracer")


class TracedCall:
    """A pure function of arrays, jitted, whose calls inside a trace are cheap from the second on.

    Args:
        function: the function; its name is that of the calls.
    """

    def __init__(self, function: Callable) -> None:
        self.function = function
        self._call = jax.jit(function)
        self._kept: dict[tuple, tuple | None] = {}

    def __call__(self, *args: Any) -> Any:
        """Call the function; its arguments are pytrees of arrays."""
        trace = core.trace_ctx.trace
        # Under `vmap` or `jvp` the innermost trace transforms the call, so its equation is not the one that was kept.
        if trace.__class__ is not DynamicJaxprTrace or not _CAN_EMIT:
            return self._call(*args)
        flat, tree = tree_flatten(args)
        # Numbers and constants, which the call makes arrays of.
        if not all(isinstance(x, Tracer) for x in flat):
            return self._call(*args)
        # `trace_context` holds the settings that JAX's own caches depend on: x64, default precision, meshes.
        key = (tree, config.trace_context(), *map(jax.typeof, flat))
        kept = self._kept.get(key)
        if kept is None:
            out = self._call(*args)
            if key not in self._kept:
                if len(self._kept) >= _MAX_KEPT:
                    self._kept.clear()
                self._kept[key] = _equation(flat, out)
            return out
        primitive, params, avals, out_tree = kept
        where = source_info_util.current()
        operands = [trace.to_jaxpr_tracer(x, where) for x in flat]
        return tree_unflatten(out_tree, trace.emit_eqn(operands, avals, primitive, params, core.no_effects, where))


def _equation(flat: list, out: Any) -> tuple | None:
    """Return primitive, parameters, types and structure of results of the equation that a call left.

    None if it has effects, or takes or gives anything else than the call does: constants, inputs handed through.
    """
    results, tree = tree_flatten(out)
    eqn = getattr(results[0], "parent", None) if results else None
    taken, given = getattr(eqn, "in_tracers", ()), getattr(eqn, "outvars", ())
    if eqn is None or eqn.effects or len(taken) != len(flat) or len(given) != len(results):
        return None
    if any(x is not t for x, t in zip(flat, taken, strict=True)):
        return None
    if any(getattr(x, "val", None) is not v for x, v in zip(results, given, strict=True)):
        return None
    return eqn.primitive, eqn.params, [v.aval for v in given], tree
