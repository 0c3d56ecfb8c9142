"""Interoperation with sharded `jax.Array`s: layout ↔ `NamedSharding`.

A layout without padding *is* an ordinary array with a `NamedSharding`, so any JAX library can take it and give it back:

    placement                      Mesh: devices, names and types of the axes
    split, broadcast               PartitionSpec
    partial_sum                    PartitionSpec(..., unreduced={axis}), on axes of type Explicit

JAX keeps the summand of a rank as its block of an unreduced array; here it is the rank's part of a leading dim.
"""

from __future__ import annotations

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from sbpjax._core.runtime.ambient_mesh import evaluate_global, hide_mesh
from sbpjax.errors import SbpError
from sbpjax.sbp.algebra import codes_from_spec, spec_from_codes
from sbpjax.sbp.layout import Layout, layout_of
from sbpjax.sbp.no_alias import copy_without_alias
from sbpjax.sbp.placement import placement as Placement


def layout_from_sharding(sharding: NamedSharding, shape: tuple[int, ...], dtype) -> tuple[Layout, bool]:
    """Return the layout of an array with a `NamedSharding`, and whether the sharding holds the same blocks.

    A spec that lists the axes of a dim against the mesh's order has no nd-sbp; the layout with the axes in order is
    returned, and the array must be moved to it.
    """
    spec, names = sharding.spec, sharding.mesh.axis_names
    codes = codes_from_spec(spec, names, len(shape))
    exact = codes is not None
    if codes is None:
        dims = (e if e is None or isinstance(e, str) else tuple(sorted(e, key=names.index)) for e in spec.partitions)
        codes = codes_from_spec(PartitionSpec(*dims, unreduced=spec.unreduced), names, len(shape))
    if codes is None:
        raise SbpError(
            "reading the layout of a jax.Array",
            f"spec {sharding.spec} of an array of {len(shape)} dims",
            "a spec names dims that the array has",
            "check the array's NamedSharding",
        )
    return layout_of(Placement.from_mesh(sharding.mesh), codes, tuple(shape), dtype), exact


@evaluate_global
@hide_mesh
def from_jax(array: jax.Array) -> tuple[jax.Array, Layout | None]:
    """Return the physical array and layout of a `jax.Array`; the layout is None for an array on one device.

    Args:
        array: any committed or uncommitted array; on several devices it needs a `NamedSharding`.
    """
    sharding = array.sharding
    if isinstance(sharding, SingleDeviceSharding):
        return array, None
    if not isinstance(sharding, NamedSharding):
        raise SbpError(
            "from_jax(array)",
            f"sharding {sharding}",
            "an nd-sbp describes a NamedSharding",
            "jax.device_put(array, NamedSharding(mesh, PartitionSpec(...))) first",
        )
    layout, exact = layout_from_sharding(sharding, array.shape, array.dtype)
    if layout.partial_axes and not exact:
        raise SbpError(
            "from_jax(array)",
            f"sharding {sharding}",
            "an unreduced array splits its dims over axes in the mesh's order",
            "jax.sharding.reshard(array, ...) to a spec with the axes in that order",
        )
    if layout.partial_axes:
        block = (1,) * len(layout.partial_axes) + layout.local_shape
        return _of_blocks(array, layout.physical_shape, layout.sharding, block), layout
    if array.sharding == layout.sharding:
        return array, layout
    return jax.device_put(copy_without_alias(array, layout.sharding), layout.sharding), layout


@evaluate_global
@hide_mesh
def to_jax(array: jax.Array, layout: Layout, mesh: Mesh | None = None) -> jax.Array:
    """Return the physical array as an ordinary sharded `jax.Array` of the logical shape.

    ``mesh``: the mesh of the result; by default the placement's, with axes of type Explicit if there are partial
    sums.
    """
    if mesh is None:
        sharding = sharding_of(layout)
        mesh = sharding.mesh
    elif mesh.devices.shape != layout.placement.hierarchy or (mesh.devices != layout.placement.devices).any():
        raise SbpError(
            "x.jax(mesh=...)",
            f"a mesh of shape {mesh.devices.shape} for {layout.placement!r}",
            "the mesh has the placement's devices in its grid",
            "build it as jax.sharding.Mesh(x.placement.devices, names)",
        )
    elif not _holds_partial_sums(mesh, layout):
        raise SbpError(
            "x.jax(mesh=...)",
            f"{layout!r}, and {mesh}",
            "a partial sum is an unreduced array, which JAX has on axes of type Explicit",
            "x.jax(), or x.to_global(sbp=...) without partial_sum first",
        )
    else:
        sharding = _on_mesh(mesh, layout)
    if layout.partial_axes:
        return _of_blocks(array, layout.shape, sharding, layout.local_shape)
    if mesh == layout.placement.auto_mesh:
        return array
    return jax.device_put(copy_without_alias(array, sharding), sharding)


def sharding_of(layout: Layout) -> NamedSharding:
    """Return the sharding of the array of a layout, on the placement's mesh; with Explicit axes for partial sums."""
    found = layout.__dict__.get("jax_sharding")
    if found is None:
        mesh = layout.placement.mesh
        if not _holds_partial_sums(mesh, layout):
            mesh = Mesh(mesh.devices, mesh.axis_names, (AxisType.Explicit,) * len(mesh.axis_names))
        found = layout.__dict__["jax_sharding"] = _on_mesh(mesh, layout)
    return found


def _on_mesh(mesh: Mesh, layout: Layout) -> NamedSharding:
    if not layout.is_even:
        raise SbpError(
            "x.jax()",
            repr(layout),
            "a jax.Array has no padding, and this tensor's dims do not divide by their ranks",
            "x.to_global(sbp=sbpjax.sbp.broadcast).jax()",
        )
    return NamedSharding(mesh, spec_from_codes(layout.codes, len(layout.shape), mesh.axis_names))


def _holds_partial_sums(mesh: Mesh, layout: Layout) -> bool:
    return all(mesh.axis_types[a] == AxisType.Explicit for a in layout.partial_axes)


def _of_blocks(array: jax.Array, shape: tuple, sharding: NamedSharding, block: tuple) -> jax.Array:
    """Return an array of the same blocks, each in another shape."""
    blocks = [shard.data.reshape(block) for shard in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(shape, sharding, blocks)
