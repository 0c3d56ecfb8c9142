"""CPU cores available to this process."""

from __future__ import annotations

import os


def cores() -> int:
    """Return the number of cores that this process may use; all of the machine where the system does not report it."""
    allowed = getattr(os, "sched_getaffinity", None)  # macOS and Windows have none
    return os.cpu_count() or 1 if allowed is None else len(allowed(0))
