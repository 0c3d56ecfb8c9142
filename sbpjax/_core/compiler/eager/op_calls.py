"""Calls of local ops for which C++ knows no program yet: evaluated, compiled, or a part of a trace.

`Op.call` is a ``jax.jit`` function. Where it has compiled a program for its inputs, C++ runs that; else they come to
`Misses`:

    in a trace of JAX               the op becomes equations of that program
    few calls so far, on a CPU      NumPy computes it (`evaluator`); C++ keeps nothing, so the next call comes here too
    else                            it is compiled without the ambient mesh, and C++ keeps the program
    else, of an op of 16 programs   a ``jax.jit`` function of its own, in a table that drops those not used for longest
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax

from sbpjax._core.jax_private import ArrayImpl, call_of_misses, config, eval_trace, trace_of_thread
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax._core.runtime.gc_pause import pause_gc
from sbpjax._core.runtime.lru_cache import LRUCache, most_programs

from . import evaluator
from .background_compile import compile_soon
from .evaluator.evaluated import EvaluatedProgram, may_evaluate
from .options import options_of

MANY = 16
_programs = LRUCache(most_programs())
_KEPT: Any = object()  # in `_programs`: compiled, and kept by C++


class Misses:
    """What `Op.call` does where C++ knows no program.

    Args:
        op: the op.

    Attributes:
        call: the value of `Op.call`.
        ahead: the compilation of a program by another thread, see `background_compile`; None without one.
    """

    def __init__(self, op: Any) -> None:
        self._op = op
        self._function = op.function()
        self._jitted: Any = None
        self._options: dict | None = None
        self.ahead: Any = None
        self.call = call_of_misses(hide_mesh(self._function), self._run)

    @functools.cached_property
    def _plain(self) -> Any:
        """The ``jax.jit`` function without options; to make it takes 80 us, and an op that has a trace needs none."""
        return jax.jit(self._function)

    def _run(self, *arrays: Any) -> tuple:
        """Return the results, what C++ keeps, and whether it asks again at the next call."""
        if trace_of_thread.value is not eval_trace:
            # Without compiler options, which a part of a program cannot have.
            return self._plain._cache_miss(*arrays)
        try:
            kinds = [x.aval if x.__class__ is ArrayImpl else x is not None and _aval_of(x) for x in arrays]
        except TypeError:  # no array: JAX's error names the argument
            return self._plain._cache_miss(*arrays)
        key = (self._op, config.enable_x64.value, *kinds)
        program = _programs.find(key)
        if program is None:
            program = _programs.keep(key, self._select(arrays))
        if program.__class__ is EvaluatedProgram:
            # NumPy reads no mesh, and to hide it takes a tenth of such a call.
            results = program(arrays) if may_evaluate() else None
            if results is not None:
                if program.calls == program.half:
                    compile_soon(self, list(map(_struct, kinds)))
                return results, None, True
        return self._run_compiled(arrays, key, program)

    @hide_mesh
    def _run_compiled(self, arrays: Sequence, key: tuple, program: Any) -> tuple:
        if program.__class__ is EvaluatedProgram:
            # A call that cannot be evaluated, as one on another device, does not end the count.
            program = _KEPT if program.calls > 0 else _programs.keep(key, self._compiled())
        if self.ahead is not None:
            self.ahead.finish()
        if program is _KEPT:
            return self.jit_function(arrays)._cache_miss(*arrays)
        return program(*arrays), None, True

    @hide_mesh
    @pause_gc()
    def _select(self, arrays: Sequence) -> Any:
        found = evaluator.first_use.program_for(self._op, arrays) if may_evaluate() else None
        return self._compiled() if found is None else found

    def trace(self, arrays: Sequence) -> tuple:
        """Return the jaxpr and the tree of results for arrays or structs; JAX keeps the trace."""
        traced = self._plain.trace(*arrays)
        return traced.jaxpr, traced.out_tree

    def _compiled(self) -> Any:
        if self._op.programs < MANY:
            return _KEPT
        return jit_without_mesh(self._op.function(), compiler_options=self._options)

    def jit_function(self, arrays: Sequence) -> Any:
        """Return the ``jax.jit`` function with its options, which the first arrays, or structs, decide."""
        if self._jitted is None:
            self._options = options_of(self._op.name, self.trace(arrays)[0])
            # Of the same function, so that JAX keeps its trace.
            options = {} if self._options is None else {"compiler_options": self._options}
            self._jitted = jit_without_mesh(self._function, **options)
        return self._jitted


_aval_of = hide_mesh(jax.typeof)  # an aval of a number has the ambient mesh


def _struct(aval: Any) -> jax.ShapeDtypeStruct | None:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) if aval else None
