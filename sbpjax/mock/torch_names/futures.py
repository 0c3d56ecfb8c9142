"""`torch.futures`: values that are there later, by Python's own."""

from __future__ import annotations

import concurrent.futures as _python
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Future(Generic[_T]):
    """A value that somebody sets later.

    Args:
        devices: accepted.
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._inner: _python.Future = _python.Future()

    def done(self) -> bool:
        """Return whether there is a result or an error."""
        return self._inner.done()

    def wait(self) -> Any:
        """Wait for the result and return it, or raise the error."""
        return self._inner.result()

    value = wait

    def set_result(self, result: Any) -> None:
        """Set the result."""
        self._inner.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set the error."""
        self._inner.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call ``callback(self)`` when there is a result or an error."""
        self._inner.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return the future of ``callback(self)``."""
        after = Future()

        def run(_: Any) -> None:
            try:
                after.set_result(callback(self))
            except BaseException as error:
                after.set_exception(error)

        self._inner.add_done_callback(run)
        return after


def wait_all(futures: Sequence[Future]) -> list:
    """Return the results of all."""
    return [future.wait() for future in futures]


def collect_all(futures: Sequence[Future]) -> Future:
    """Return the future of the list, done when all are."""
    whole = Future()
    left = [len(futures)]

    def one(_: Future) -> None:
        left[0] -= 1
        if not left[0]:
            whole.set_result(list(futures))

    for future in futures:
        future.add_done_callback(one)
    if not futures:
        whole.set_result([])
    return whole
