"""Meshes of JAX as placements: the axes that divide something, and layouts as shardings with the mesh's own names.

    mesh  (stage 1, data 2, model 4)     plans on a placement of hierarchy (2, 4)
    P("model", "data")                   codes (1, 0): data splits dim 1, model dim 0
    P(("data", "model"))                 codes (0, 0)

An axis of one device divides nothing, and every axis costs planning time, so such axes are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from sbpjax._core.programs.plan import Codes
from sbpjax.errors import PlacementError, SbpError
from sbpjax.sbp import algebra, even_split
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.layout import axes_of_dims
from sbpjax.sbp.placement import placement as Placement

_MAKE = 'mesh = jax.make_mesh((2, 4), ("data", "model"))'


class MeshAxes:
    """A mesh, and the placement of its axes of more than one device.

    Args:
        mesh: a `jax.sharding.Mesh`, whose devices may be absent, or a placement, which has one.

    Attributes:
        mesh: the mesh.
        placement: where steps are planned; its axes have the mesh's names.
    """

    def __init__(self, mesh: Any) -> None:
        mesh = mesh.mesh if isinstance(mesh, Placement) else mesh
        if not isinstance(mesh, Mesh):
            seen, rule = f"mesh={type(mesh).__name__}", "a step is planned for the devices of a jax.sharding.Mesh"
            raise PlacementError("auto.plan(step, ...)", seen, rule, _MAKE)
        kinds = {str(t) for t in mesh.axis_types}
        if len(kinds) > 1 or AxisType.Manual in mesh.axis_types:
            types = ", ".join(f"{n} {t.name}" for n, t in zip(mesh.axis_names, mesh.axis_types, strict=True))
            rule = "all axes of the mesh are Auto, or all are Explicit: the plan lays out values over all of them"
            fix = "Mesh(mesh.devices, mesh.axis_names), whose axes are Auto"
            raise PlacementError("auto.plan(step, ...)", f"a mesh with axes {types}", rule, fix)
        kept = [a for a, n in enumerate(mesh.devices.shape) if n > 1] or [0]
        devices = mesh.devices.reshape([mesh.devices.shape[a] for a in kept])
        self.mesh = mesh
        self.placement = Placement.from_mesh(Mesh(devices, [mesh.axis_names[a] for a in kept]))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes of more than one device."""
        return self.placement.axis_names

    @property
    def sizes(self) -> Codes:
        """The number of devices along each of them."""
        return tuple(int(n) for n in self.placement.hierarchy)

    @property
    def is_explicit(self) -> bool:
        """Whether the types of arrays in the user's programs have shardings over this mesh."""
        return AxisType.Explicit in self.mesh.axis_types

    @property
    def title(self) -> str:
        """The axes with their sizes, in words."""
        return " × ".join(f"{name} {n}" for name, n in zip(self.names, self.sizes, strict=True))

    @property
    def whole(self) -> Codes:
        """The layout of a value that every device holds."""
        return (B,) * len(self.names)

    def spec(self, codes: Codes, ndim: int) -> PartitionSpec:
        """Return a layout as a `PartitionSpec`."""
        return algebra.spec_from_codes(codes, ndim, self.names)

    def sharding(self, codes: Codes, ndim: int) -> NamedSharding:
        """Return a layout as a sharding over the mesh."""
        return NamedSharding(self.mesh, self.spec(codes, ndim))

    def own_codes(self, sharding: Any, shape: Sequence[int]) -> Codes | None:
        """Return the layout of an array that is sharded over this mesh, None of any other sharding."""
        if not isinstance(sharding, NamedSharding):
            return None
        try:
            return self.parse("", sharding, shape)
        except SbpError:  # over another mesh
            return None

    def parse(self, name: str, layout: Any, shape: Sequence[int]) -> Codes:
        """Return the codes of a layout that the user gave.

        ``layout``: a `PartitionSpec`, a `NamedSharding` over this mesh, or an sbp: by axis name, or one entry per axis
        of more than one device.
        """
        if isinstance(layout, NamedSharding):
            if (layout.mesh.axis_names, layout.mesh.axis_sizes) != (self.mesh.axis_names, self.mesh.axis_sizes) or (
                isinstance(layout.mesh, Mesh) and (layout.mesh.devices != self.mesh.devices).any()
            ):
                rule = f"a pinned sharding is over the mesh of the plan, {self.title}"
                raise _wrong_pin(name, layout, "a sharding over another mesh", rule)
            layout = layout.spec
        if isinstance(layout, PartitionSpec):
            layout = self._without_single_axes(layout)
        codes = algebra.parse(layout, self.placement, len(shape))
        self.check(name, layout, codes, shape)
        return codes

    def check(self, name: str, layout: Any, codes: Codes, shape: Sequence[int]) -> None:
        """Refuse a layout that no array between two steps can have."""
        if P in codes:
            rule = "an array between two steps is no partial sum"
            raise _wrong_pin(name, layout, algebra.nd_name(codes), rule)
        for dim, axes in enumerate(axes_of_dims(codes, len(shape))):
            if axes and not even_split.even(shape[dim], tuple(self.sizes[a] for a in axes)):
                count = math.prod(self.sizes[a] for a in axes)
                rule = f"jax.jit divides dims evenly: dim {dim} of {shape[dim]} is not divisible by {count}"
                raise _wrong_pin(name, layout, f"a tensor of shape {list(shape)}", rule)

    def _without_single_axes(self, spec: PartitionSpec) -> PartitionSpec:
        single = set(self.mesh.axis_names) - set(self.names)
        dims: list = [(e,) if isinstance(e, str) else e for e in spec.partitions]
        dims = [tuple(n for n in e if n not in single) or None if isinstance(e, tuple) else e for e in dims]
        return PartitionSpec(*dims, unreduced=spec.unreduced - single, reduced=spec.reduced - single)


def _wrong_pin(name: str, layout: Any, seen: str, rule: str) -> SbpError:
    spec = layout.spec if isinstance(layout, NamedSharding) else layout
    fix = f"pins={{{name!r}: PartitionSpec()}} keeps it whole; without a pin the planner chooses"
    return SbpError(f"auto.plan(step, ..., pins={{{name!r}: {spec}}})", seen, rule, fix)
