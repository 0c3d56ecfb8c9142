"""`device`: the device of a local tensor, e.g. ``sbpjax.device("cpu", 1)``."""

from __future__ import annotations

import functools
from typing import Any

import jax

from sbpjax._core import naming
from sbpjax._core.runtime import processes
from sbpjax._core.runtime.context_exit import ContextExit, restore_last
from sbpjax.errors import PlacementError
from sbpjax.sbp import broadcast
from sbpjax.sbp.placement import PLATFORM

from .mode import mode

_PLATFORM = {**PLATFORM, "meta": "meta"}
_TYPE = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "tpu": "tpu"}
# of PyTorch's own list; programs name them to ask whether a device is one
_NAMED_BY_TORCH = frozenset("xpu xla mps hpu mtia ipu hip ve vulkan maia lazy privateuseone".split())


class device:
    """One device.

    Args:
        type: ``"cpu"``, ``"cuda"``, ``"tpu"``, with or without an index (``"cuda:1"``), another `device`, or a number:
            that of an accelerator. ``"meta"`` is no device: tensors on it have no data.
        index: the device's number among those of its type on this machine, or of this process.

    Raises:
        PlacementError: no such type or index on this machine.
    """

    __slots__ = ("index", "type")

    def __new__(cls, type=None, index: int | None = None):
        """Return the device; that of a global tensor is itself."""
        return type if isinstance(type, PlacementDevice) else super().__new__(cls)

    def __init__(self, type, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        elif hasattr(type, "platform"):  # a jax.Device
            type, index = _TYPE[type.platform], index_of(type)
        elif isinstance(type, int) and not isinstance(type, bool) and index is None:
            type, index = _accelerator(type), type
        text = str(type)
        if ":" in text:
            text, _, number = text.partition(":")
            if not number.isdigit() or index is not None:
                raise _unknown(type, index)
            index = int(number)
        if text not in _PLATFORM and not (text in _NAMED_BY_TORCH and naming.is_torch()):
            raise _unknown(type, index)
        self.type = text
        self.index = index

    def jax(self):
        """Return the `jax.Device`; ``"meta"`` itself, which has none."""
        if self.type == "meta":
            return META
        devices = devices_of(self.type) if self.type in _PLATFORM else ()
        index = local_device_number(self.index or 0, len(devices))
        if index >= len(devices):
            raise _unknown(self.type, self.index)
        return devices[index]

    def __enter__(self) -> device:
        """Make this the default device of new tensors, in this thread until the block ends."""
        mode.devices.append(mode.device)
        mode.device = self
        return self

    __exit__ = ContextExit(lambda self: restore_last(mode, "device", mode.devices))

    def __repr__(self) -> str:
        if self.type == "meta" or (self.index is None and naming.is_torch()):
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index or 0})"

    def __str__(self) -> str:
        if self.type == "meta" or (self.index is None and naming.is_torch()):
            return self.type
        return f"{self.type}:{self.index or 0}"

    def __eq__(self, other) -> bool:
        if isinstance(other, str):
            if naming.is_torch():
                return False  # as in PyTorch; programs compare with names of devices that no machine here has
            other = device(other)
        return isinstance(other, device) and self._key() == other._key()

    def _key(self) -> tuple:
        return _PLATFORM.get(self.type, self.type), self.index or 0

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self):
        return device, (self.type, self.index)


class PlacementDevice(device):
    """The value of ``x.device`` of a global tensor: the type of its devices, and its placement.

    A tensor made with ``device=x.device`` is global on that placement, in broadcast, and ``y.to(x.device)`` brings a
    local ``y`` there. So code that puts its constants on the device of its inputs runs on placements unchanged.

    Example:
        >>> p = sbpjax.placement("cpu", [0, 1])
        >>> x = sbpjax.ones(4, placement=p, sbp=sbpjax.sbp.split(0))
        >>> sbpjax.arange(4, device=x.device).sbp
        (sbpjax.sbp.broadcast,)
    """

    __slots__ = ("placement",)

    def __new__(cls, placement=None, index: int | None = None):
        """Return a new instance; `device` itself would return its argument."""
        return object.__new__(cls)

    def __init__(self, placement, index: int | None = None) -> None:
        # `device(x.device)` is `x.device`, initialised again.
        if isinstance(placement, PlacementDevice):
            return
        self.placement = placement
        self.type = _TYPE.get(_PLATFORM.get(placement.type, ""), placement.type)
        self.index = None

    @property
    def sbp(self) -> tuple:
        """Broadcast on every axis of the placement: the nd-sbp of new tensors on it."""
        return (broadcast,) * len(self.placement.hierarchy)

    def jax(self):
        """Raise: a placement is many devices."""
        raise _unknown(self, None)

    def __repr__(self) -> str:
        return f"device(type={self.type!r}, placement={self.placement!r})"

    def __str__(self) -> str:
        return self.type

    def __eq__(self, other) -> bool:
        return isinstance(other, PlacementDevice) and self.placement == other.placement

    def __hash__(self) -> int:
        return hash(self.placement)

    def __reduce__(self):
        return PlacementDevice, (self.placement,)


# The device of a tensor without data, in place of a `jax.Device`.
META = "meta"


def _unknown(type, index) -> PlacementError:
    operation = f"device({type!r}, {index!r})" if index is not None else f"device({type!r})"
    here = [f"{kind} ({n} of them)" for kind in ("cpu", "cuda", "tpu") if (n := _count(kind))]
    seen = f"JAX's default backend is {jax.default_backend()}"
    return PlacementError(operation, seen, f"devices here are {', '.join(here)} and meta", 'e.g. sbpjax.device("cpu")')


def _count(type: str) -> int:
    try:
        return len(jax.local_devices(backend=_PLATFORM[type]))
    except RuntimeError:
        return 0


def _accelerator(index: int) -> str:
    """Return the type of the accelerators, of which a number alone names one."""
    type = accelerator_type()
    if type == "cpu":
        rule = "Cannot access accelerator device when none is available: a number alone names an accelerator"
        raise PlacementError(f"device({index})", "devices of the type cpu alone", rule, 'sbpjax.device("cpu")')
    return type


def accelerator_type() -> str:
    """Return the type of the devices that programs compute on: the CPU's where there is no other."""
    type = _TYPE.get(jax.default_backend(), "cpu")
    return "cuda" if _PLATFORM["cuda"] == type else type


def local_device_number(index: int, count: int) -> int:
    """Return the number among the ``count`` devices of this process of a number among those of its machine.

    The processes of a launcher have the devices of their machine in turn: ``cuda:1`` is the only one of local rank 1,
    where it is also ``cuda:0``.
    """
    own = index - processes.current().local_rank * count
    return own if 0 <= own < count else index


@functools.cache
def devices_of(type: str) -> tuple:
    """Return the JAX devices of a type on this process."""
    try:
        # Local ones: ``cuda:0`` is the first of this process, as in PyTorch, also where JAX numbers devices through all
        # processes.
        return tuple(jax.local_devices(backend=_PLATFORM[type]))
    except RuntimeError as error:
        raise _unknown(type, None) from error


@functools.cache
def index_of(jax_device) -> int:
    """Return a JAX device's number among those of its type."""
    return devices_of(_TYPE[jax_device.platform]).index(jax_device)


def default_jax_device():
    """Return the default `jax.Device` of local tensors."""
    config: Any = jax.config  # its flags are made at run time
    return config.jax_default_device or jax.local_devices()[0]


def from_jax_device(jax_device) -> device:
    """Return the `device` of a `jax.Device`."""
    return _from_jax_device(jax_device, naming.is_torch())


@functools.cache
def _from_jax_device(jax_device, for_torch: bool) -> device:
    type, index = _TYPE[jax_device.platform], index_of(jax_device)
    # PyTorch has one CPU, without a number.
    return device(type) if for_torch and type == "cpu" and index == 0 else device(type, index)
