"""Interoperation with sharded `jax.Array`s: layout ↔ `NamedSharding`.

A layout without partial sums and without padding *is* an ordinary array with a `NamedSharding`, so any JAX library
can take it and give it back: ``placement`` ↔ ``Mesh``, nd-sbp ↔ ``PartitionSpec``.
"""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import NamedSharding, SingleDeviceSharding

from sbpjax._core.runtime.ambient_mesh import hide_mesh
from sbpjax.errors import SbpError
from sbpjax.sbp.layout import Layout, codes_from_spec, layout_of, physical_spec
from sbpjax.sbp.no_alias import copy_without_alias
from sbpjax.sbp.placement import placement as Placement


def layout_from_sharding(sharding: NamedSharding, shape: tuple[int, ...], dtype) -> tuple[Layout, bool]:
    """Return the layout of an array with a `NamedSharding`, and whether the sharding holds the same blocks.

    A spec that lists the axes of a dim against the mesh's order has no nd-sbp; the layout with the axes in order is
    returned, and the array must be moved to it.
    """
    placement = Placement.of_devices(np.asarray(sharding.mesh.devices))
    spec = tuple(sharding.spec)
    codes = codes_from_spec(spec, sharding.mesh.axis_names, len(shape))
    exact = codes is not None
    if codes is None:
        order = sharding.mesh.axis_names.index
        spec = tuple(e if e is None or isinstance(e, str) else tuple(sorted(e, key=order)) for e in spec)
        codes = codes_from_spec(spec, sharding.mesh.axis_names, len(shape))
    if codes is None:
        raise SbpError(
            "reading the layout of a jax.Array",
            f"spec {sharding.spec} of an array of {len(shape)} dims",
            "a spec names dims that the array has",
            "check the array's NamedSharding",
        )
    return layout_of(placement, codes, tuple(shape), dtype), exact


@hide_mesh
def from_jax(array: jax.Array) -> tuple[jax.Array, Layout | None]:
    """Return the physical array and layout of a `jax.Array`; the layout is None for an array on one device.

    Args:
        array: any committed or uncommitted array; on several devices it needs a `NamedSharding`.

    Raises:
        SbpError: the sharding is of another kind, or unreduced.
    """
    sharding = array.sharding
    if isinstance(sharding, SingleDeviceSharding):
        return array, None
    if not isinstance(sharding, NamedSharding) or getattr(sharding.spec, "unreduced", None):
        raise SbpError(
            "from_jax(array)",
            f"sharding {sharding}",
            "an nd-sbp describes a NamedSharding whose spec is reduced",
            "jax.device_put(array, NamedSharding(mesh, PartitionSpec(...))) first",
        )
    layout, _ = layout_from_sharding(sharding, array.shape, array.dtype)
    with jax.ensure_compile_time_eval():  # a trace, too, gets an array
        if array.sharding == layout.sharding:
            return array, layout
        return jax.device_put(copy_without_alias(array, layout.sharding), layout.sharding), layout


@hide_mesh
def to_jax(array: jax.Array, layout: Layout, mesh=None) -> jax.Array:
    """Return the physical array as an ordinary sharded `jax.Array` of the logical shape.

    Args:
        array: the physical array.
        layout: its layout; no P, no padding.
        mesh: name the axes as this mesh does; None keeps ``a0``, ``a1``, ….

    Raises:
        SbpError: the layout has partial sums or padding, or the mesh has other devices.
    """
    if layout.partial_axes or not layout.is_even:
        reason = "partial sums" if layout.partial_axes else "dims that do not divide, which are stored padded"
        raise SbpError(
            "x.jax()",
            repr(layout),
            f"a jax.Array has neither partial sums nor padding; this tensor has {reason}",
            "x.to_global(sbp=sbpjax.sbp.broadcast).jax()",
        )
    if mesh is None:
        return array
    if mesh.devices.shape != layout.placement.hierarchy or (mesh.devices != layout.placement.devices).any():
        raise SbpError(
            "x.jax(mesh=...)",
            f"a mesh of shape {mesh.devices.shape} for {layout.placement!r}",
            "the mesh has the placement's devices in its grid",
            "build it as jax.sharding.Mesh(x.placement.devices, names)",
        )
    sharding = NamedSharding(mesh, physical_spec(layout.codes, len(layout.shape), mesh.axis_names))
    return jax.device_put(copy_without_alias(array, sharding), sharding)
