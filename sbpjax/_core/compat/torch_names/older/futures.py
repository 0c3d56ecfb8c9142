"""`torch.futures`: results to come, as Python's own futures.

later = torch.futures.Future()
doubled = later.then(lambda done: 2 * done.value())
later.set_result(3)
doubled.wait()                                       # 6
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Future(concurrent.futures.Future, Generic[T]):
    """A result to come.

    Args:
        devices: accepted: arrays know when they are ready.
    """

    def __init__(self, *, devices: Any = None) -> None:
        super().__init__()

    def wait(self) -> Any:
        """Wait for the result and return it, or raise the error that was set."""
        return self.result()

    def value(self) -> Any:
        """Return the result of a future that is done."""
        return self.result(0)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return the future of a function of this one, which runs when this one is done."""
        after = Future()

        def run(done: Future) -> None:
            try:
                after.set_result(callback(done))
            except Exception as error:
                after.set_exception(error)

        super().add_done_callback(run)
        return after


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """Return a future of the futures, which is done when all of them are."""
    result, left = Future(), set(map(id, futures))

    def note(done: Future) -> None:
        left.discard(id(done))
        if not left:
            result.set_result(futures)

    if not futures:
        result.set_result(futures)
    for future in futures:
        future.add_done_callback(note)
    return result


def wait_all(futures: list[Future]) -> list:
    """Wait for all futures and return their results; the first error is raised."""
    return [future.wait() for future in futures]
