"""Pauses of garbage collection: while the package is imported, a program or an op is traced, or an index is read.

All make many objects that stay, and nothing that a collection would free. Yet Python walks all of them again and again
as they grow: 50 to 80 ms of the 250 of an import, a third of the trace of 24 layers, which makes half a million,
a fifth of the first step of a ResNet, which makes 160 programs, two thirds of the reading of the index of 4,096
processes.
"""

import contextlib
import gc


class Pause:
    """A pause of collection while this object lives; it ends even if the import that holds it fails."""

    def __init__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __del__(self) -> None:
        if self._was:
            gc.enable()


@contextlib.contextmanager
def pause_gc():
    """Pause garbage collection until the end of the block."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Not collected here: Python will when it likes, and by then most of the trace is gone by reference counts.
        gc.enable()
