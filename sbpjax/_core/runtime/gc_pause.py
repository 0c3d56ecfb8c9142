"""Garbage collection rests while the package is imported.

Importing makes tens of thousands of functions and classes that stay. In the midst of it Python would look through
them, and through all that JAX has made, for what could be freed: 50 to 80 ms of 250.
"""

import gc


class Pause:
    """Collection rests while this lives; it goes on even if the import that holds it fails."""

    def __init__(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def __del__(self) -> None:
        if self._was:
            gc.enable()
