"""`torch.distributed.rpc`: calls from process to process, which there are none of."""

from __future__ import annotations

from .absent import absences


def is_available() -> bool:
    """Return False."""
    return False


def _is_current_rpc_agent_set() -> bool:
    """Return False."""
    return False


__getattr__ = absences("torch.distributed.rpc", "processes run the same program here", "sbpjax.distributed.send, recv")
