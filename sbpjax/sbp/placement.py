"""Placements: grids of devices that hold a tensor or run a program.

A tensor of a 2 × 4 data-and-tensor-parallel run lives on ``placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])``: eight
ranks in a hierarchy of two rows and four columns, so its sbp has two entries. A rank is a global device id in the
order of ``jax.devices(type)``. Order is meaningful: on ``placement("cpu", [3, 2, 1, 0])`` rank 3 holds the first
part of a split.

`placement` maps to `jax.sharding.Mesh` one to one: ``placement(mesh)`` keeps the names and types of its axes, which the
tensors on it show as ``x.placement.axis_names`` and give back in ``x.jax()``. Without a mesh the axes are named ``a0``,
``a1``, … from the outside in. Programs run on `auto_mesh`, whose axes have the type Auto. Placements of the same
devices are equal whatever their axes are called, so tensors of both meet in one op; a cache whose values show names has
`named` in its keys.
"""

from __future__ import annotations

import functools
import os
import reprlib
from collections.abc import Iterable
from itertools import starmap

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh

from sbpjax._core import naming
from sbpjax._core.runtime.ambient_mesh import ambient_mesh
from sbpjax._core.runtime.context_exit import ContextExit
from sbpjax._core.runtime.processes import current
from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax.errors import PlacementError, PlacementTypeError, count_text

from . import topology
from .hierarchies import hierarchies

_SHORT = reprlib.Repr()  # of ranks that may be no grid
_SHORT.maxlist = _SHORT.maxtuple = 16
_SHORT.maxother = 60
_CUDA = "cpu" if os.environ.get("SBPJAX_CUDA") == "cpu" else "gpu"  # a script written for GPUs may run on CPUs
PLATFORM = {"cpu": "cpu", "cuda": _CUDA, "gpu": _CUDA, "tpu": "tpu"}


def devices_of(type: str) -> list:
    """Return the JAX devices of a placement type, in rank order.

    Raises:
        PlacementError: this machine has no device of that type.
    """
    try:
        return current().visible(jax.devices(PLATFORM[type]))
    except RuntimeError as error:
        raise PlacementError(
            f"devices of type {type!r}",
            f"JAX has {sorted({d.platform for d in jax.devices()})} here",
            "a placement's type must have devices on this machine",
            'use placement("cpu", ...) or install the extra for that accelerator',
        ) from error


class placement:
    """A grid of devices.

    Args:
        type: ``"cpu"``, ``"cuda"`` (or ``"gpu"``), ``"tpu"``; or a `jax.sharding.Mesh` alone, see `from_mesh`.
        ranks: device ids as a nested list, range or array, of any number of dims; its shape is the hierarchy.
        axis_names: the names of the dims; by default ``a0``, ``a1``, ….

    Raises:
        PlacementError: unknown type, no such device, duplicate ranks, ragged or empty ranks, not one name per dim.
        PlacementTypeError: ranks are not integers, or names not strings.

    Example:
        >>> placement("cpu", [[0, 1], [2, 3]]).hierarchy
        (2, 2)
    """

    __slots__ = (
        *("__weakref__", "_auto_mesh", "_devices", "_hash", "_key", "_mesh", "_ranks", "_reach", "_topology", "_type"),
        "named",
    )

    named: tuple[tuple[str, ...], tuple[AxisType, ...]] | None
    """The given names and types of the axes; None for the default ones."""

    def __new__(cls, type: str | Mesh | None = None, ranks=None, *, axis_names=None) -> placement:
        if isinstance(type, (Mesh, AbstractMesh)) and ranks is None and axis_names is None:
            return cls.from_mesh(type)
        return object.__new__(cls)

    def __init__(self, type: str | Mesh, ranks=None, *, axis_names: Iterable[str] | None = None) -> None:
        if isinstance(type, Mesh) and ranks is None and axis_names is None:
            return  # made by `from_mesh`
        if ranks is None or isinstance(ranks, Mesh) or isinstance(type, Mesh):
            raise PlacementTypeError(
                "placement(...)",
                f"type {_SHORT.repr(type)}, ranks {_SHORT.repr(ranks)}",
                "a placement is made of a device type and ranks, or of a mesh alone",
                'placement("cpu", [0, 1]) or placement(mesh)',
            )
        if not isinstance(type, str):
            raise PlacementTypeError(
                "placement(...)", f"type={type!r}", "type is a string", 'e.g. placement("cpu", [0, 1])'
            )
        if type not in PLATFORM:
            raise PlacementError(
                f"placement({type!r}, ...)",
                f"type {type!r}",
                f"Expected one of cpu, cuda device type at start of device string: {type}; {sorted(PLATFORM)} here",
                'e.g. placement("cpu", [0, 1])',
            )
        self._type = "cpu" if PLATFORM[type] == "cpu" else type
        self._ranks = _checked_ranks(type, ranks)
        self._devices = self._topology = None
        self._check_devices()
        self._seal(None if axis_names is None else _checked_names(axis_names, self._ranks.ndim))

    @classmethod
    def from_mesh(cls, mesh: Mesh) -> placement:
        """Return the placement of a `jax.sharding.Mesh`, with the names and types of its axes.

        Args:
            mesh: of devices, which need not be present; axes of any type.

        Raises:
            PlacementError: an `AbstractMesh`, which has no devices.
            PlacementTypeError: ``mesh`` is no mesh.

        Example:
            >>> placement.from_mesh(jax.make_mesh((2, 4), ("data", "model"))).axis_names
            ('data', 'model')
        """
        if not isinstance(mesh, Mesh):
            kind = PlacementError if isinstance(mesh, AbstractMesh) else PlacementTypeError
            rule = "a placement is made of a jax.sharding.Mesh, which has devices"
            raise kind("placement.from_mesh(mesh)", f"a {mesh.__class__.__name__}", rule, "jax.make_mesh(sizes, names)")
        if mesh.empty:
            rule, fix = "a placement has at least one rank", "jax.make_mesh(sizes, names)"
            raise PlacementError("placement.from_mesh(mesh)", "an empty mesh", rule, fix)
        self = cls.of_devices(mesh.devices)
        self._seal((mesh.axis_names, mesh.axis_types))
        return self

    @staticmethod
    def current() -> placement | None:
        """Return the placement of the innermost ``with placement(...)`` block, else that of JAX's ambient mesh.

        Returns:
            None without either; inside a ``jax.jit`` the mesh that it was called under.

        Example:
            >>> with jax.set_mesh(jax.make_mesh((2, 4), ("data", "model"))):
            ...     placement.current().hierarchy
            (2, 4)
        """
        mesh = ambient_mesh()
        return current_placement() or (None if mesh is None else placement.from_mesh(mesh))

    @classmethod
    def of_devices(cls, devices: np.ndarray, type: str | None = None) -> placement:
        """Return the placement over an array of JAX devices, which need not exist on this machine."""
        self = cls.__new__(cls)
        devices = np.asarray(devices)
        platform = devices.flat[0].platform
        self._type = type or ("cuda" if platform == "gpu" else platform)
        self._ranks = np.asarray([d.id for d in devices.flat]).reshape(devices.shape)
        self._topology = None
        try:
            own = devices_of(self._type)
            ids = {d: i for i, d in enumerate(own)}
            present = all(d in ids for d in devices.flat)
        except PlacementError:
            present = False
        if present:
            self._ranks = np.asarray([ids[d] for d in devices.flat]).reshape(devices.shape)
        self._devices = None if present else devices
        self._seal()
        return self

    @classmethod
    def topology(cls, name: str, hierarchy: Iterable[int] | None = None, *, ranks=None) -> placement:
        """Return a placement over absent devices, for ahead-of-time compilation; see `sbpjax.sbp.topology`.

        Programs on it can be compiled and inspected (memory, collectives), not run; tensors on it are abstract.

        Args:
            name: the machine: a TPU slice such as ``"v5p:4x4x4"``, several as in ``"2*v5p:4x4x4"``, or GPUs such as
                ``"h100:8"``, ``"h100:2x8"``.
            hierarchy: the sizes of the grid, outer first; one axis over all devices by default.
            ranks: instead of a hierarchy, the grid itself: positions in the machine's list of devices.

        Raises:
            PlacementError: no such machine, the wheel with its compiler is missing, or the sizes do not fit.

        Example:
            >>> placement.topology("v5p:4x4x4", [8, 8]).hierarchy  # doctest: +SKIP
            (8, 8)
        """
        found = topology.devices(name)
        grid = topology.arrange_ranks(name, hierarchy) if ranks is None else _checked_ranks(name, ranks)
        if grid.max() >= len(found) or grid.min() < 0:
            raise PlacementError(
                f"placement.topology({name!r}, ranks=...)",
                f"ranks {grid.min()} to {grid.max()}",
                f"{name} has {len(found)} devices: ranks 0 to {len(found) - 1}",
                "choose ranks in that range",
            )
        self = cls.__new__(cls)
        self._type = "cuda" if found[0].platform == "gpu" else found[0].platform
        self._ranks = grid
        self._devices = np.asarray(found, dtype=object)[grid]
        self._topology = name
        self._seal()
        return self

    @staticmethod
    def all(type: str | None = None, *, device_type: str | None = None) -> placement:
        """Return the 1-D placement of every device of a type; ``device_type`` is OneFlow's name of it."""
        type = str(device_type if type is None else type)
        if type not in PLATFORM:
            return placement(type, [0])
        return placement(type, range(len(devices_of(type))))

    @staticmethod
    def auto(count: int | None = None, type: str = "cpu", *, topology: str | None = None, axes: int = 2):
        """Return devices whose grid a graph with auto parallelism chooses; see `sbpjax.sbp.hierarchies`.

        Args:
            count: the number of devices, the first ones; all by default.
            type: the device type.
            topology: an absent machine instead, see `topology`.
            axes: the most axes that the grid may have.

        Returns:
            A `Hierarchies`, for ``config.enable_auto_parallel(placement=...)``; its ``candidates()`` are the grids.

        Raises:
            PlacementError: there are fewer devices.

        Example:
            >>> [p.hierarchy for p in placement.auto(4).candidates()]
            [(4,), (2, 2)]
        """
        if topology is None:
            grid = lambda shape: placement(type, np.arange(np.prod(shape)).reshape(shape))  # noqa: E731
            return hierarchies(count, len(devices_of(type)), type, None, axes, grid)
        whole = placement.topology(topology)
        grid = functools.partial(placement.topology, topology)
        return hierarchies(count, whole.size, whole.type, topology, axes, grid)

    def _seal(self, named: tuple[tuple[str, ...], tuple[AxisType, ...]] | None = None) -> None:
        self._ranks.setflags(write=False)
        self._reach = self._mesh = self._auto_mesh = None
        unnamed = tuple(f"a{i}" for i in range(self._ranks.ndim)), (AxisType.Auto,) * self._ranks.ndim
        self.named = None if named == unnamed else named
        absent = () if self._devices is None else tuple(self._devices.flat)
        self._key = (PLATFORM[self._type], self._ranks.shape, tuple(self._ranks.flat), absent)
        self._hash = hash(self._key)

    def _check_devices(self) -> None:
        count = len(devices_of(self._type))
        missing = sorted({int(r) for r in self._ranks.flat if not 0 <= r < count})
        if missing:
            there = f"there {'is' if count == 1 else 'are'} {count_text(count, f'{self._type} device')} here"
            raise PlacementError(
                f"placement({self._type!r}, {ranks_text(self._ranks)})",
                f"ranks {ranks_text(missing)}",
                f"{there}: ranks 0 to {count - 1}",
                "choose ranks in that range"
                + (
                    ", or set SBPJAX_CPU_DEVICES / sbpjax.env.set_cpu_devices(n) before first use"
                    if self._type == "cpu"
                    else ""
                ),
            )

    @property
    def type(self) -> str:
        """The device type, as it was written."""
        return self._type

    device_type = type

    @property
    def ranks(self) -> np.ndarray:
        """The ranks, shaped as the hierarchy."""
        return self._ranks

    @property
    def hierarchy(self) -> tuple[int, ...]:
        """The size of each placement dimension."""
        return self._ranks.shape

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the mesh axes, outer first."""
        return tuple(f"a{i}" for i in range(self._ranks.ndim)) if self.named is None else self.named[0]

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._ranks.size

    @property
    def devices(self) -> np.ndarray:
        """The JAX devices, shaped as the hierarchy."""
        return self.auto_mesh.devices

    @property
    def is_present(self) -> bool:
        """Whether the devices exist here, so that programs can run on them."""
        return self._devices is None

    @property
    def spans_processes(self) -> bool:
        """Whether some of the devices belong to other processes, whose data cannot be read here."""
        return self._find_reach()[0]

    @property
    def covers_processes(self) -> bool:
        """Whether every process owns some of the devices; always so with one process."""
        return self._find_reach()[1]

    def _find_reach(self) -> tuple[bool, bool]:
        if self._reach is None:
            if not self.is_present or jax.process_count() == 1:
                self._reach = (False, True)
            else:
                owners = {d.process_index for d in self.devices.flat}
                self._reach = (owners != {jax.process_index()}, len(owners) == jax.process_count())
        return self._reach

    @property
    def topology_name(self) -> str | None:
        """The absent machine, as given to `topology`; None for devices of this machine."""
        return self._topology

    @property
    def mesh(self) -> Mesh:
        """The `jax.sharding.Mesh` of this placement; that of `from_mesh`, axis types included."""
        if self._mesh is None:
            types = None if self.named is None else self.named[1]
            auto = self.auto_mesh
            self._mesh = auto if types in (None, auto.axis_types) else Mesh(auto.devices, self.axis_names, types)
        return self._mesh

    @property
    def auto_mesh(self) -> Mesh:
        """The mesh with axes of type Auto, over which programs run and arrays are stored."""
        if self._auto_mesh is None:
            devices = self._devices
            if devices is None:
                devices = np.asarray(devices_of(self._type), dtype=object)[self._ranks]
            self._auto_mesh = Mesh(devices, self.axis_names)
        return self._auto_mesh

    def __eq__(self, other) -> bool:
        return self is other or (isinstance(other, placement) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self._topology is not None:
            return f'{naming.package()}.placement.topology("{self._topology}", {list(self.hierarchy)})'
        names = "" if self.named is None else f", axis_names={self.axis_names}"
        return f'{naming.package()}.placement(type="{self._type}", ranks={ranks_text(self._ranks)}{names})'

    def __reduce__(self):
        if self._topology is not None:
            return _topology, (self._topology, self._ranks.tolist(), *([] if self.named is None else [self.named]))
        if self.named is not None:
            return _with_axes, (self._type, self._ranks.tolist(), *self.named)
        return placement, (self._type, self._ranks.tolist())

    def __enter__(self) -> placement:
        _SCOPE.append(self)
        return self

    __exit__ = ContextExit(lambda self: starmap(_SCOPE.pop, ((),)))


_SCOPE: list[placement] = []


def _topology(name: str, ranks: list, named=None) -> placement:
    found = placement.topology(name, ranks=ranks)
    found._seal(named)
    return found


def _with_axes(type: str, ranks: list, names: tuple[str, ...], types: tuple[AxisType, ...]) -> placement:
    found = placement(type, ranks)
    found._seal((names, types))
    return found


def current_placement() -> placement | None:
    """Return the placement of the innermost ``with placement(...)`` block, or None."""
    return _SCOPE[-1] if _SCOPE else None


def flat_placement(p: placement) -> placement:
    """Return the 1-D placement over the same devices in the same order."""
    return p if p.ranks.ndim == 1 else _flatten(p)


@functools.lru_cache(maxsize=64)
def _flatten(p: placement) -> placement:
    if p.topology_name is not None:
        return _topology(p.topology_name, p.ranks.reshape(-1).tolist())
    return placement.of_devices(p.devices.reshape(-1), p.type)


def one_per_process(type: str) -> placement:
    """Return the placement of the first device of every process."""
    first: dict = {}
    for device in devices_of(type):
        first.setdefault(device.process_index, device)
    return placement.of_devices(np.asarray(list(first.values()), dtype=object), type)


def _checked_ranks(type: str, ranks) -> np.ndarray:
    operation = f"placement({type!r}, {_SHORT.repr(ranks)})"
    fix = "give each rank once, e.g. [[0, 1], [2, 3]]"
    if isinstance(ranks, dict):  # OneFlow's older form {node: [ranks]}
        ranks = [r for node in sorted(ranks) for r in ranks[node]]
    if isinstance(ranks, range):
        ranks = list(ranks)
    try:
        array = np.asarray(ranks)
    except ValueError as error:
        raise PlacementError(operation, "ragged ranks", "ranks form a full grid", fix) from error
    if array.dtype == object:
        raise PlacementError(operation, "ragged ranks", "ranks form a full grid", fix)
    if array.size == 0 or array.ndim == 0:
        raise PlacementError(operation, f"ranks of shape {array.shape}", "a placement has at least one rank", fix)
    if not np.issubdtype(array.dtype, np.integer):
        raise PlacementTypeError(operation, f"ranks of dtype {array.dtype}", "ranks are integers", fix)
    values, counts = np.unique(array, return_counts=True)
    if (counts > 1).any():
        twice = ranks_text(values[counts > 1])
        raise PlacementError(operation, f"ranks {twice} more than once", "a rank appears once", fix)
    return array.astype(np.int64)


def _checked_names(names: Iterable[str], ndim: int) -> tuple[tuple[str, ...], tuple[AxisType, ...]]:
    names = tuple(names)
    operation, fix = f"placement(..., axis_names={names!r})", 'e.g. axis_names=("data", "model")'
    if not all(isinstance(n, str) for n in names):
        raise PlacementTypeError(operation, f"{_SHORT.repr(names)}", "names of axes are strings", fix)
    if len(names) != ndim or len(set(names)) != ndim:
        raise PlacementError(operation, f"{len(names)} names of {ndim} axes", "each axis has a name of its own", fix)
    return names, (AxisType.Auto,) * ndim
