"""CUDA streams and events: XLA orders its launches, so a stream is a name, and an event a time on the host."""

from __future__ import annotations

import time
from typing import Any

from .devices import synchronize as _synchronize


class Event:
    """A moment: `record` waits for the launched work and takes the time.

    Args:
        enable_timing: accepted; the time is always taken.
        blocking: accepted.
        interprocess: accepted.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._time_s: float | None = None

    def record(self, stream: Any = None) -> None:
        """Wait for everything launched, and take the time."""
        _synchronize()
        self._time_s = time.perf_counter()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another."""
        if self._time_s is None or end_event._time_s is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time")
        return 1e3 * (end_event._time_s - self._time_s)

    def query(self) -> bool:
        """Return whether the work launched before has run; true, as `record` waits."""
        return True

    def synchronize(self) -> None:
        """Do nothing: `record` waited."""

    def wait(self, stream: Any = None) -> None:
        """Do nothing: `record` waited."""


class Stream:
    """A name for an order of launches; all launches are in XLA's one order.

    Args:
        device: accepted.
        priority: accepted.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.priority = priority

    def synchronize(self) -> None:
        """Wait for everything launched."""
        _synchronize()

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: launches are in one order."""

    def wait_event(self, event: Event) -> None:
        """Do nothing: launches are in one order."""

    def record_event(self, event: Event | None = None) -> Event:
        """Return a recorded event."""
        event = Event() if event is None else event
        event.record()
        return event

    def query(self) -> bool:
        """Return whether everything launched has run, after waiting for it."""
        _synchronize()
        return True


_DEFAULT = Stream()


def current_stream(device: Any = None) -> Stream:
    """Return the one stream."""
    return _DEFAULT


def default_stream(device: Any = None) -> Stream:
    """Return the one stream."""
    return _DEFAULT


class stream:
    """A block whose launches go to a stream; there is one order of launches."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> stream:
        return self

    def __exit__(self, *error: Any) -> None:
        pass
