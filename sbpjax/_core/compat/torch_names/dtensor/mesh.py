"""`DeviceMesh`: PyTorch's name of a placement, with slices by axis name.

    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    mesh.placement                     # placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]], axis_names=("dp", "tp"))
    mesh["tp"].placement               # the row of this process: placement("cpu", [0, 1, 2, 3]) on ranks 0 to 3

The entries of a mesh are devices. With one device per process, as under ``--cpu_devices 1`` or with a GPU each, they
are PyTorch's ranks. A process that drives several devices is at the first of its positions: its slices go through that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sbpjax._core.runtime import processes
from sbpjax._core.tensor.creation.from_data import tensor
from sbpjax.distributed.group import ProcessGroup
from sbpjax.errors import OpError, OpValueError
from sbpjax.sbp.placement import placement as Placement
from sbpjax.sbp.process_local import owners, positions_of

_LATEST: dict[Placement, DeviceMesh] = {}  # the mesh that the program has made over a placement, with its names


class DeviceMesh:
    """A grid of devices with named axes.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` or ``"tpu"``.
        mesh: the numbers of the devices, nested as the grid.
        mesh_dim_names: the names of its axes.

    Raises:
        PlacementError: there is no such device, or one is named twice.
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None, _root: Any = None, **_: Any
    ) -> None:
        self._grid = np.asarray(mesh.tolist() if hasattr(mesh, "tolist") else mesh)
        self.device_type = str(device_type).partition(":")[0]
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self.placement = Placement(self.device_type, self._grid, axis_names=self.mesh_dim_names)
        self._root, self.axes = _root or (self, tuple(range(self._grid.ndim)))
        _LATEST[self.placement] = self

    @staticmethod
    def of(placement: Placement) -> DeviceMesh:
        """Return the mesh over a placement."""
        names = placement.axis_names if placement.named else None
        return _LATEST.get(placement) or DeviceMesh(placement.type, placement.ranks, mesh_dim_names=names)

    @staticmethod
    def is_known(placement: Placement) -> bool:
        """Return whether the program has made a mesh over a placement."""
        return placement in _LATEST

    @property
    def root(self) -> DeviceMesh:
        """The mesh that this is a slice of, or itself."""
        return self._root

    @property
    def mesh(self) -> Any:
        """The numbers of the devices as a tensor."""
        return tensor(self._grid.tolist())

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._grid.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._grid.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of devices, or the size of an axis."""
        return self._grid.size if mesh_dim is None else self._grid.shape[mesh_dim]

    def numel(self) -> int:
        """Return the number of devices."""
        return self._grid.size

    def get_rank(self) -> int:
        """Return this process's rank in the run."""
        return processes.current().rank

    def get_coordinate(self) -> list[int] | None:
        """Return the first position of this process in the grid; None outside."""
        found = positions_of(processes.current().rank, self.owners)
        return list(found[0]) if found else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return this process's position on an axis, which a mesh of one axis need not name."""
        if mesh_dim is None and self.ndim > 1:
            fix = "mesh.get_local_rank('dp')"
            raise OpError("mesh.get_local_rank()", repr(self), "a mesh of several axes needs the name of one", fix)
        at = self.get_coordinate()
        return -1 if at is None else at[0 if mesh_dim is None else self._axis(mesh_dim)]

    @property
    def owners(self) -> np.ndarray:
        """The process of each device, shaped as the grid."""
        return owners(self.placement, processes.current())

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the processes on an axis, through this one."""
        line = self if mesh_dim is None else self._slice((self._axis(mesh_dim),))
        return ProcessGroup(list(dict.fromkeys(int(rank) for rank in line.owners.flat)))

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the group of each axis."""
        return [self.get_group(axis) for axis in range(self.ndim)]

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        return self._slice(tuple(self._axis(name) for name in names))

    def _axis(self, name: int | str) -> int:
        if isinstance(name, int):
            return name
        if name not in (self.mesh_dim_names or ()):
            rule = f"Invalid mesh_dim_name {name}; the axes are {self.mesh_dim_names}"
            raise _MeshKeyError("mesh[name]", f"{name!r}", rule, "init_device_mesh(..., mesh_dim_names=('dp', 'tp'))")
        return (self.mesh_dim_names or ()).index(name)

    def _slice(self, axes: tuple[int, ...]) -> DeviceMesh:
        if axes == tuple(range(self.ndim)):
            return self
        at = self.get_coordinate() or [0] * self.ndim
        grid = self._grid[tuple(slice(None) if a in axes else i for a, i in enumerate(at))]
        kept = sorted(axes)
        grid = grid.transpose([kept.index(a) for a in axes])
        names = None if self.mesh_dim_names is None else [self.mesh_dim_names[a] for a in axes]
        root = self._root, tuple(self.axes[a] for a in axes)
        return DeviceMesh(self.device_type, grid, mesh_dim_names=names, _root=root)

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        return DeviceMesh(self.device_type, self._grid.reshape(-1), mesh_dim_names=(name,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and other.placement == self.placement

    def __hash__(self) -> int:
        return hash(self.placement)

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __repr__(self) -> str:
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self._grid.tolist()}{names})"


class _MeshKeyError(OpValueError, KeyError):
    """An axis that a mesh does not have."""

    __str__ = Exception.__str__


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None, **_: Any
) -> DeviceMesh:
    """Return a mesh over the devices of the run, in their order.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` or ``"tpu"``.
        mesh_shape: the sizes of the axes; their product is at most the number of devices of all processes.
        mesh_dim_names: one name per axis.

    Raises:
        PlacementError: there are fewer devices.
    """
    shape = tuple(int(size) for size in mesh_shape)
    return DeviceMesh(device_type, np.arange(math.prod(shape)).reshape(shape), mesh_dim_names=mesh_dim_names)
