"""Uninterruptible launch: runs a compiled program as one call into C, without Python code in between.

A program takes the memory of donated arrays and returns new ones. If anything is raised between its run and the
assignment of the new arrays, the old ones are gone and the new ones are lost. Python raises between its own
instructions only: from a signal's handler, or for another thread. So the run and the assignment go into one call into C
(`_core.tensor.storage.exchange`), and this file makes the run a part of it:

    call      the program; where it is ready, JAX runs it without Python
    slowly    the same as a chain of C calls, where `call` is not ready; Python prepares the inputs before it

JAX (0.10) makes `call` ready in a first call of its own, which is Python before and after the run. Here the first call
is `prepare_call`, and its results make `call` ready.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter, methodcaller
from typing import Any

import jax

from sbpjax._core.jax_private import ArrayImpl, _jax, config, pxla, tree_util

_SIGNATURES = 64
_SAME = itemgetter(slice(None))


def checks_results() -> bool:
    """Return whether JAX looks at results in Python (`jax.debug_nans`, `jax.debug_infs`): nothing is donated then."""
    return config.debug_nans.value or config.debug_infs.value


def accepts_args(compiled: Any, args: Sequence) -> bool:
    """Return whether a `jax.stages.Compiled` takes some arguments; nothing runs."""
    try:
        _CompiledProgram(compiled).inputs(args)
    except (TypeError, ValueError):
        return False
    return True


def copy_array(array: Any) -> Any:
    """Return a copy of an array, also with values that a debug check would reject."""
    if not checks_results():
        return jax.numpy.copy(array)
    with jax.debug_nans(False), jax.debug_infs(False):
        return jax.numpy.copy(array)


class Launcher:
    """A program that runs within one call into C.

    Args:
        find: returns the `jax.stages.Compiled` for some arguments; it runs nothing.
        name: of the program.

    Attributes:
        call: the program. Where it is not ready for its arguments it returns an empty tuple, and nothing has run.
        ready: whether it is for some arguments, in a list that is empty if not.
    """

    __slots__ = ("_found", "_lock", "call", "ready")

    def __init__(self, find: Callable[[tuple], Any], name: str) -> None:
        self._found = found = _ProgramTable(find)
        self.ready = found.ready
        self._lock = threading.Lock()
        # Its callback refers to `found` alone: with `self` an executable would wait for the garbage collector.
        rest = [], [], pxla.JitGlobalCppCacheKeys(), tree_util.dispatch_registry, pxla.cc_shard_arg
        self.call = _jax.pjit(name, None, found.on_miss, *rest)

    def is_ready(self, args: Sequence) -> bool:
        """Return whether `call` has run with some arguments; nothing runs."""
        found = self._found
        if not found.ready and found.known:
            with self._lock:
                if not found.ready and found.find_program(args).results is not None:
                    self.call(*args)  # it has been ready for no arguments so far, so this misses, and makes it so
        return bool(found.ready)

    def prepare_call(self, args: Sequence, outs: list) -> tuple[list[Iterator], Callable[[], None]]:
        """Return iterators that in turn run the program and extend a list by its results, without Python.

        Args:
            args: its arguments.
            outs: the list.

        Returns:
            The iterators, and a function to call when they are exhausted.

        Raises:
            TypeError, ValueError: the arguments are not those that it was compiled for.
        """
        return self._found.find_program(args).chain(args, outs)


class _ProgramTable:
    """The programs of a launcher by signature.

    Attributes:
        known: signature → program.
        ready: has an entry once `call` has been made ready for one of them.
    """

    __slots__ = ("_find", "known", "ready")

    def __init__(self, find: Callable[[tuple], Any]) -> None:
        self._find = find
        self.known: dict[tuple, _CompiledProgram] = {}
        self.ready: list = []

    def find_program(self, args: Sequence) -> _CompiledProgram:
        key = tuple([_signature(x) for x in args])
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = _CompiledProgram(self._find(tuple(args)))
            if len(self.known) > _SIGNATURES:
                del self.known[next(iter(self.known))]
        return known

    def on_miss(self, *args: Any) -> tuple:
        """Return JAX's values for a call that is not ready: the result, and the fast path if it is known."""
        known = self.known.get(tuple([_signature(x) for x in args]))
        if known is None or known.results is None:
            return (), None, True
        self.ready[:] = (True,)
        return (), known.fast_path(len(args)), False


def _signature(x: Any) -> Any:
    if isinstance(x, jax.Array):
        return x.aval, x.sharding, x.committed
    return type(x), getattr(x, "shape", None), getattr(x, "dtype", None)


class _CompiledProgram:
    """One compiled program.

    Attributes:
        results: once it has run, for every result its abstract value and whether it is committed; None before, and of
            a program that JAX always runs with some Python.
    """

    __slots__ = ("_call", "_checked", "_constants", "_executable", "_tree", "results")

    def __init__(self, compiled: Any) -> None:
        executable, params = compiled._executable, compiled._params
        self._executable, self._tree = executable, params.out_tree
        self._call = executable.unsafe_call
        self._constants = executable.shard_const_args(params.const_args)
        self.results: tuple | None = None
        # JAX's own checks of the arguments, with the run left out of it.
        self._checked = copy.copy(executable)
        self._checked._unsafe_call = partial(_call_sharded, self._call)

    def inputs(self, args: Sequence) -> Any:
        """Return the arguments of the runtime."""
        return self._checked.call(*self._constants, *args)

    def chain(self, args: Sequence, outs: list) -> tuple[list[Iterator], Callable[[], None]]:
        call = self._call
        inputs = self.inputs(args)
        run = call.xla_executable.execute_sharded
        handled = methodcaller("consume_with_handlers", call.out_handler.handlers)
        ran: list = []
        if not (call.ordered_effects or call.has_unordered_effects or call.has_host_callbacks):
            steps: list[Iterator] = [map(ran.append, map(run, (inputs,))), map(outs.extend, map(handled, ran))]
            return steps, partial(self._learn, outs)
        inputs = call._add_tokens_to_inputs(inputs)
        tokens: list = []
        effects = methodcaller("consume_with_handlers", [_SAME] * len(call.ordered_effects), strict=False)
        steps = [
            map(ran.append, map(partial(run, with_tokens=True), (inputs,))),
            map(tokens.append, map(effects, ran)),
            map(tokens.append, map(methodcaller("consume_token"), ran)),
            map(outs.extend, map(handled, ran)),
        ]
        return steps, lambda: call._handle_token_bufs(*tokens)

    def _learn(self, outs: list) -> None:
        if self.results is None and {ArrayImpl}.issuperset(map(type, outs)):
            self.results = [x.aval for x in outs], [x.committed for x in outs]

    def fast_path(self, count: int) -> Any:
        """Return JAX's fast path without Python, for a number of arguments."""
        made = self._executable
        kept = [i in made._kept_var_idx for i in range(len(self._constants) + count)]
        # The structure of its results: all are flat.
        return pxla.MeshExecutableFastpathData(
            made.xla_executable, self._tree, made._in_shardings, made._out_shardings, *self.results, kept,
            made._dispatch_in_layouts, self._constants,
        )  # fmt: skip


def _call_sharded(call: Any, *args: Any) -> Any:
    return call.in_handler([x for i, x in enumerate(args) if i in call.kept_var_idx])
