"""What programs take from OneFlow's compiled module: its `Tensor`, and the bytes that one rank tells all.

payload = flow._oneflow_internal.cpu_broadcast(pickled if rank == 0 else None, 0)
"""

from __future__ import annotations

from .tensor import Tensor as Tensor


def cpu_broadcast(data: bytes | None, root: int) -> bytes:
    """Return the bytes of rank ``root`` on every rank; what the others pass is not looked at."""
    from .distributed import broadcast_object_list

    told = [data]
    broadcast_object_list(told, root)
    return told[0]
