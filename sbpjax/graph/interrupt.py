"""Ctrl-C waits while donated state is in flight.

A program takes the memory of its state and returns new arrays. Between the two the old arrays are gone, so a
``KeyboardInterrupt`` there would leave parameters without a value. Within the block it is put off to its end.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` wraps it in enums, which cost more than the calls
import threading

_MAIN = threading.main_thread().ident


class Uninterrupted:
    """A `with` block that Ctrl-C does not break; other threads get no signals, so for them it does nothing."""

    __slots__ = ("_before", "_pending")

    def __enter__(self) -> Uninterrupted:
        self._pending = None
        self._before = None
        if threading.get_ident() == _MAIN:
            handler = _signal.getsignal(_signal.SIGINT)
            # Else SIGINT is ignored, kills at once, or belongs to a C library.
            if callable(handler):
                self._before = handler
                _signal.signal(_signal.SIGINT, self._note)
        return self

    def _note(self, number, frame) -> None:
        self._pending = number, frame

    def __exit__(self, *exc) -> None:
        if self._before is not None:
            # The user's handler is back before it is called, so that it may raise, and a second Ctrl-C reaches it.
            _signal.signal(_signal.SIGINT, self._before)
            if self._pending is not None:
                self._before(*self._pending)
