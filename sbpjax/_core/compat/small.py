"""Small modules of OneFlow: `oneflow.asyncs`, `oneflow._oneflow_internal`, and `utils.load_library`.

with asyncs.thread(asyncs.Thread()):
y = model(x)                   # launched and not waited for, as everywhere: JAX's dispatch is asynchronous

payload = _oneflow_internal.cpu_broadcast(pickled if rank == 0 else None, 0)
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.tensor import Tensor as Tensor
from sbpjax.distributed import broadcast_object_list as _broadcast
from sbpjax.errors import NotInJaxError


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


def cpu_broadcast(data: bytes | None, root: int) -> bytes:
    """Return the bytes of rank ``root`` on every rank; the bytes of the others are ignored."""
    arguments = [data]
    _broadcast(arguments, root)
    return arguments[0]


def load_library(val: str) -> None:
    """Raise: operators of OneFlow's or PyTorch's in a shared library cannot run in XLA.

    Raises:
        NotInJaxError: always; it names the replacement.
    """
    rule = "a library of operators is compiled against OneFlow's or PyTorch's own runtime"
    fix = "jax.ffi.register_ffi_target for a C function, and sbpjax.wrap_jax for the JAX function that calls it"
    raise NotInJaxError(f"utils.load_library({val!r})", "a shared library", rule, fix)
