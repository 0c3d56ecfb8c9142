"""Collective error handling for file I/O: if the local work of one rank fails, all ranks raise.

Rank 1 runs on a machine that does not see the directory. It raises at once; rank 0, which sees it, would wait for
rank 1 in the middle of the reading. So the ranks exchange their outcomes before they begin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sbpjax._core.runtime import processes
from sbpjax.errors import CheckpointError

Result = TypeVar("Result")


def run_collectively(
    operation: str, work: Callable[[], Result], summarize: Callable[[Result], Any]
) -> tuple[Result, dict[int, Any]]:
    """Return the result of ``work()`` here and the shared part of every rank's; all ranks call it.

    Args:
        operation: the name of the operation, equal on all ranks.
        work: the local work of this rank.
        summarize: the part of its result to share with the others.

    Raises:
        CheckpointError: it failed on another rank; the text names it. Where it failed, its own error is raised.
    """
    failure, result, value = None, None, None
    try:
        result = work()
        value = summarize(result)
    except Exception as error:
        failure = error
    gathered = processes.current().exchange(
        operation, (None if failure is None else f"{type(failure).__name__}: {failure}", value)
    )
    if failure is not None:
        raise failure
    failed = {rank: text for rank, (text, _) in gathered.items() if text is not None}
    if failed:
        raise CheckpointError(
            operation,
            "; ".join(f"rank {rank} failed with {text}" for rank, text in failed.items()),
            "all ranks reach the checkpoint, and save or load the same tensors",
            f"look at rank {next(iter(failed))}: its path, its disk, its model",
        )
    return result, {rank: value for rank, (_, value) in gathered.items()}  # type: ignore[return-value]
