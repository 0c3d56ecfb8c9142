"""`DeviceRows`: cached rows and their optimizer state on the devices, and copies of rows in and out.

One small compiled program reads the rows that leave, and another writes those that come, in place: they cost what these
rows cost, however many the cache has. (In one program XLA:CPU would copy the whole cache, to write into the copy.)
Numbers of rows are padded to powers of two, so there are some ten such programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax.errors import TableError
from sbpjax.utils.interrupts import Assignment

from .store import MASTER, VALUE

_LEAST = 256
_BLOCK = 1 << 16


def _compile_reader(tensors: list) -> Callable:
    """Return a compiled function that reads rows of tensors."""

    def read(slots: Any) -> list:
        with flow.no_grad():
            return [_like(t.detach()[slots], slots) for t in tensors]

    return flow.compile(read, state=tensors)


def _compile_writer(tensors: list) -> Callable:
    """Return a compiled function that writes rows of tensors in place."""

    def write(slots: Any, *values: Any) -> None:
        with flow.no_grad():
            for t, rows in zip(tensors, values, strict=True):
                t[slots] = rows

    return flow.compile(write, state=tensors)


def _like(rows: Any, save: Any) -> Any:
    return rows.to_global(save.placement, save.sbp) if save.is_global else rows


class DeviceRows:
    """The device's side of a cache.

    Args:
        name: of the tables, for messages.
        weight: ``(slots, width)``, local or global; its last row is never given away.
    """

    def __init__(self, name: str, weight: Any) -> None:
        self.name, self.weight = name, weight
        self.optimizer: Callable[[], Any] = lambda: None  # a weak reference
        self._read: Any = None
        self._write: Any = None
        self._tensors: dict[str, Any] = {VALUE: weight}

    @property
    def spans_processes(self) -> bool:
        """Whether several processes hold parts of the cache."""
        return self.weight.is_global and flow.env.get_world_size() > 1

    @property
    def names(self) -> list[str]:
        """What a row consists of: its value and the optimizer's state."""
        return list(self._tensors)

    def is_current(self) -> bool:
        """Return whether the tensors of a row are those that are known."""
        optimizer = self.optimizer()
        state = {} if optimizer is None else optimizer.state.get(self.weight, {})
        if optimizer is not None and "step" not in state:
            return False
        known = self._tensors
        found = self._states(state)
        return found.keys() == known.keys() and all(found[n] is known[n] for n in found)

    def _states(self, state: dict[str, Any]) -> dict[str, Any]:
        shape = tuple(self.weight.shape)
        own = {n: t for n, t in sorted(state.items()) if isinstance(t, flow.Tensor) and tuple(t.shape) == shape}
        return {VALUE: self.weight} | own

    def new_states(self) -> dict[str, Any] | None:
        """Return the tensors of a row as the optimizer has them now, None if they are those that are known."""
        if self.is_current():
            return None
        optimizer = self.optimizer()
        if optimizer is None:
            return {VALUE: self.weight}
        if "step" not in optimizer.state.get(self.weight, {}):
            optimizer.prepare()
        return self._states(optimizer.state.get(self.weight, {}))

    def assignments_to_take(self, found: dict[str, Any]) -> list[Assignment]:
        """Return the assignments that take tensors of `new_states`; what they hold is not looked at."""
        return [(self, "_tensors", found), (self, "_read", None), (self, "_write", None)]

    def assignments_to_reset(self) -> list[Assignment]:
        """Return the assignments that let `new_states` return the optimizer's tensors: rows of another store come."""
        return self.assignments_to_take({VALUE: self.weight})

    def gather(self, slots: np.ndarray, agreed: int) -> list:
        """Return the rows of slots, for every name, as tensors that may still be computed.

        Args:
            slots: the slots.
            agreed: the largest number of rows of all processes.
        """
        if not agreed:
            return []
        if self._read is None:
            self._read = _compile_reader(list(self._tensors.values()))
        return self._read(self._place_array(_pad_slots(slots, _bucket(agreed), self._last)))

    def scatter(self, slots: np.ndarray, values: list[np.ndarray], agreed: int) -> None:
        """Write rows into slots; all of them or, if that is interrupted, none.

        Args:
            slots: the slots.
            values: for every name the rows.
            agreed: the largest number of rows of all processes.
        """
        if not agreed:
            return
        if self._write is None:
            self._write = _compile_writer(list(self._tensors.values()))
        count = _bucket(agreed)
        into = self._place_array(_pad_slots(slots, count, slots[-1] if len(slots) else self._last))
        rows = []
        for name, value in zip(self.names, values, strict=True):
            # A slot that stands there several times gets the same row each time.
            pad = value[-1:] if len(value) else self._last_row(name)
            rows.append(self._place_array(np.concatenate([value, np.repeat(pad, count - len(value), 0)])))
        self._write(into, *rows)

    @property
    def _last(self) -> int:
        """The row that pads: no key has it."""
        return len(self.weight) - 1

    def read(self, slots: np.ndarray, agreed: Callable[[int], int]) -> dict[str, np.ndarray]:
        """Return the rows of slots, for every name ``(N, width)``."""
        parts: list[list[np.ndarray]] = []
        for start in range(0, agreed(len(slots)), _BLOCK):
            part = slots[start : start + _BLOCK]
            parts.append([host(t)[: len(part)] for t in self.gather(part, agreed(len(part)))])
        width = self.weight.shape[1]
        if not parts:
            return {name: np.empty((0, width), t.dtype.np) for name, t in self._tensors.items()}
        return {name: np.concatenate([p[i] for p in parts]) for i, name in enumerate(self.names)}

    def _last_row(self, name: str) -> np.ndarray:
        tensor = self._tensors[name]
        fill = 0.0 if name in (VALUE, MASTER) else initial_state_value(tensor)
        return np.full((1, self.weight.shape[1]), fill, tensor.dtype.np)

    def _place_array(self, array: np.ndarray) -> Any:
        if not self.weight.is_global:
            return flow.tensor(array, device=self.weight.device)
        local = flow.tensor(array)
        if self.spans_processes:  # each process has rows of its own
            return local.to_global(self.weight.placement, flow.sbp.split(0))
        return local.to_global(self.weight.placement, _broadcast_sbp(self.weight))

    def check_layout(self) -> None:
        """Raise unless each process has slots of its own."""
        if self.spans_processes:
            sbp = self.weight.sbp
            if len(sbp) != 1 or sbp[0] != flow.sbp.split(0):
                raise TableError(
                    f"tables {self.name!r} on {flow.env.get_world_size()} processes",
                    f"sbp={sbp}",
                    "each process has keys and slots of its own, so the cache is split(0) on a placement of one dim",
                    'table.to_global(flow.placement.all("cpu"), flow.sbp.split(0))',
                )


def initial_state_value(state: Any) -> float:
    """Return what a state of the optimizer holds before the first step."""
    row = state[-1:]
    return float((row.to_global(sbp=_broadcast_sbp(row)).to_local() if row.is_global else row).numpy()[0, 0])


def host(t: Any) -> np.ndarray:
    """Return this process's part of a tensor."""
    return (t.to_local() if t.is_global else t).numpy()


def _broadcast_sbp(t: Any) -> list:
    return [flow.sbp.broadcast] * len(t.placement.hierarchy)


def _bucket(n: int) -> int:
    return 0 if n == 0 else max(_LEAST, 1 << (n - 1).bit_length())


def _pad_slots(slots: np.ndarray, count: int, pad: int) -> np.ndarray:
    made = np.full(count, pad, np.int32)
    made[: len(slots)] = slots
    return made
