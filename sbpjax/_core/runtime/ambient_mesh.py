"""The ambient mesh: eager work runs without it, since the placement of a tensor decides where its data is.

    with jax.set_mesh(jax.make_mesh((2, 4), ("data", "model"))):
        x = flow.ones(8, 8, placement=p, sbp=split(0))     # on p, by programs that know only the mesh of p
        y = jax.jit(f)(x.jax())                            # the user's program, with the mesh

JAX reads the mesh of `jax.set_mesh` wherever it traces and compiles: a `shard_map` over another mesh is refused, and an
array of one device is copied to all devices of the mesh. A function compiled by `jit_without_mesh` never sees it, and
costs nothing more, since JAX runs a program that it knows without looking at the mesh. `hide_mesh` wraps functions
at which other eager work enters JAX, about 1 us a call under a mesh. Where JAX traces, the mesh belongs to the user's
program, and stays.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from itertools import chain, starmap
from typing import Any, TypeVar

import jax

from sbpjax._core.jax_private import (
    abstract_mesh_context,
    device_context,
    eval_context,
    eval_trace,
    trace_of_thread,
    trace_state_clean,
    unset,
    with_cache_miss,
)
from sbpjax._core.runtime.compilation_cache import rank_writes
from sbpjax._core.runtime.context_exit import ContextExit
from sbpjax.errors import MixedTensorError

_F = TypeVar("_F", bound=Callable)

_mesh_of_thread, _set_mesh = abstract_mesh_context.get_local, abstract_mesh_context.set_local
_devices_of_thread, _set_devices = device_context.get_local, device_context.set_local


def ambient_mesh() -> jax.sharding.Mesh | None:
    """Return the mesh of `jax.set_mesh`, also inside a trace; None without one."""
    mesh = _devices_of_thread()
    return None if mesh is unset or mesh is None or mesh.empty else mesh


class _RestoredMesh:
    """A ``with`` block that restores the ambient mesh at its end, which no interrupt can divide."""

    __slots__ = ("_devices", "_mesh")

    def __init__(self) -> None:
        self._mesh, self._devices = [(_mesh_of_thread(),)], [(_devices_of_thread(),)]

    def __enter__(self) -> None:
        """Change nothing: the block sets the mesh, since an interrupt in here would skip the end."""

    __exit__ = ContextExit(lambda self: chain(starmap(_set_mesh, self._mesh), starmap(_set_devices, self._devices)))


@contextlib.contextmanager
def without_mesh():
    """Run the block without the ambient mesh, in a trace too: what is traced there is no part of the user's program."""
    with _RestoredMesh():
        _set_mesh(unset)
        _set_devices(unset)
        yield


@contextlib.contextmanager
def outside_program():
    """Run the block as if JAX did not trace: on arrays, with arrays as results, and without the ambient mesh.

    `jax.ensure_compile_time_eval` of JAX 0.10.2 stays in the trace, and so under its mesh.
    """
    with eval_context(), without_mesh():
        yield


def evaluate(function: _F) -> _F:
    """Return a function that runs outside of the program that JAX may be tracing."""

    @functools.wraps(function)
    def evaluated(*args, **options):
        if trace_state_clean():
            return function(*args, **options)
        with outside_program():
            return function(*args, **options)

    return evaluated  # type: ignore[return-value]


def evaluate_global(function: _F) -> _F:
    """Return `evaluate` of a function of global tensors: those that a program of JAX closes over have values."""
    run = evaluate(function)

    @functools.wraps(function)
    def evaluated(*args, **options):
        check_no_manual_axes("work on a global tensor")
        return run(*args, **options)

    return evaluated  # type: ignore[return-value]


def check_no_manual_axes(operation: str, seen: str = "") -> None:
    """Raise inside a `jax.shard_map`, where there are no global tensors."""
    if axes := jax.sharding.get_abstract_mesh().manual_axes:
        raise MixedTensorError(
            f"{operation} inside jax.shard_map",
            f"{seen}{', and ' if seen else ''}manual axes {axes}",
            "a function under shard_map computes on the block of one rank; a global tensor is on all of them",
            "pass x.jax() to shard_map with in_specs=x.sharding.spec, or use the tensor outside",
        )


def hide_mesh(function: _F) -> _F:
    """Return a function that runs without the ambient mesh, except where JAX traces."""

    @functools.wraps(function)
    def hidden(*args, **options):
        if _mesh_of_thread() is unset or trace_of_thread.value is not eval_trace:
            return function(*args, **options)
        with _RestoredMesh():
            _set_mesh(unset)
            _set_devices(unset)
            return function(*args, **options)

    return hidden  # type: ignore[return-value]


def jit_without_mesh(function: Callable, **options: Any) -> Any:
    """Return ``jax.jit(function, **options)``, whose programs are traced and compiled without the ambient mesh.

    They are written to JAX's compilation cache by every rank (`compilation_cache`).
    """
    jitted = jax.jit(function, **options)
    call = with_cache_miss(jitted, hide_mesh(function), lambda miss: hide_mesh(rank_writes()(miss)))
    # Methods of another function with the same program: those of `call` itself would keep it alive.
    call.lower, call.trace, call.eval_shape = map(hide_mesh, (jitted.lower, jitted.trace, jitted.eval_shape))
    return call
