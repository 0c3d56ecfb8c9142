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

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from sbpjax._core.jax_private import (
    abstract_mesh_context,
    device_context,
    trace_state_clean,
    unset,
    with_cache_miss,
)

_F = TypeVar("_F", bound=Callable)

_mesh_of_thread, _set_mesh = abstract_mesh_context.get_local, abstract_mesh_context.set_local
_devices_of_thread, _set_devices = device_context.get_local, device_context.set_local


def ambient_mesh() -> jax.sharding.Mesh | None:
    """Return the mesh of `jax.set_mesh`, also inside a trace; None without one."""
    mesh = _devices_of_thread()
    return None if mesh is unset or mesh is None or mesh.empty else mesh


def hide_mesh(function: _F) -> _F:
    """Return a function that runs without the ambient mesh, except where JAX traces."""

    @functools.wraps(function)
    def hidden(*args, **options):
        # Both values are read before one is set, and restored in a ``finally`` each: no interrupt leaves the mesh
        # hidden.
        mesh, devices = _mesh_of_thread(), _devices_of_thread()
        if mesh is unset or not trace_state_clean():
            return function(*args, **options)
        try:
            _set_mesh(unset)
            _set_devices(unset)
            return function(*args, **options)
        finally:
            try:
                _set_mesh(mesh)
            finally:
                _set_devices(devices)

    return hidden  # type: ignore[return-value]


def jit_without_mesh(function: Callable, **options: Any) -> Any:
    """Return ``jax.jit(function, **options)``, whose programs are traced and compiled without the ambient mesh."""
    return with_cache_miss(jax.jit(function, **options), hide_mesh)
