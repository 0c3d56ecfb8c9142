"""C++ terminate handler: reports mismatched collectives before a Gloo exception aborts the process.

Rank 0 reads a value, rank 1 runs another program, and the collectives of the two meet. If rank 1 sends more bytes than
rank 0 has room for, Gloo's thread throws an uncaught exception, and the process is aborted without naming any rank.
``std::terminate`` calls a handler first, without a time limit: `set_terminate_handler` sets it to a Python function,
during which the other threads find and report the difference between the ranks. Then the process is aborted as usual.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable

_Handler = ctypes.CFUNCTYPE(None)
_SET = "_ZSt13set_terminatePFvvE"  # std::set_terminate(void (*)()), which returns the handler before


def set_terminate_handler(run: Callable[[], None]) -> Callable[[], None]:
    """Call a function before an uncaught C++ exception ends this process.

    Args:
        run: the function to call, in the thread that threw; when it returns, the process is aborted.

    Returns:
        A function that removes the handler. It must be called before Python ends.
    """
    try:
        # The one library that JAX has loaded, too; a system without it (not Linux) keeps its own ways.
        set_handler = getattr(ctypes.CDLL("libstdc++.so.6"), _SET)
    except (OSError, AttributeError):
        return lambda: None
    set_handler.restype, set_handler.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    before: list[int] = []

    def handler() -> None:
        with contextlib.suppress(BaseException):  # nothing may go from here into C++
            run()
        if before[0]:
            _Handler(before[0])()  # prints the exception

    kept = _Handler(handler)
    before.append(set_handler(ctypes.cast(kept, ctypes.c_void_p)) or 0)

    alive = [kept]

    def undo() -> None:
        set_handler(before[0])
        alive.clear()

    return undo
