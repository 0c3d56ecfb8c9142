"""Pause of garbage collection during the import of the package, which saves 50 to 80 ms.

Importing makes tens of thousands of functions and classes that stay. Collections in between would scan them, and all
objects of JAX, for garbage: 50 to 80 ms of 250.
"""

import gc


class Pause:
    """A pause of collection while this object lives; it ends even if the import that holds it fails."""

    def __init__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __del__(self) -> None:
        if self._was:
            gc.enable()
