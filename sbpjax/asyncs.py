"""`oneflow.asyncs`: blocks whose ops another thread issues. JAX's dispatch is asynchronous already.

worker = asyncs.Thread()
with asyncs.thread(worker):
y = model(x)                               # launched and not waited for, as everywhere
"""

from __future__ import annotations

from typing import Any


class Thread:
    """A place for ops to be issued from; a name here."""


class thread:
    """A block whose ops are issued from a thread; here they are launched in order and run asynchronously anyway.

    Args:
        worker_thread: the thread.
    """

    def __init__(self, worker_thread: Thread) -> None:
        self.worker_thread = worker_thread

    def __enter__(self) -> thread:
        return self

    def __exit__(self, *error: Any) -> None:
        pass
