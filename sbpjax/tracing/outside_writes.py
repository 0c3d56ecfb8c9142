"""`OutsideWrites`: no tensor outside ``state=`` comes out of a trace changed.

A trace runs the function once on tracers. ``model.weight.mul_(2)`` with ``model`` in ``state=`` is an output of the
program; a tensor that nobody named would be left holding a tracer, and later calls would not write it at all. So every
write of a trace is noted (`mode.touch`), undone at its end, and refused if the tensor lives on: what the function made
for itself is gone by then.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Collection

from sbpjax.errors import AutogradError
from sbpjax.tensor import Tensor
from sbpjax.tensor.mode import mode
from sbpjax.tensor.payload import Snapshot, is_traced, payload
from sbpjax.tensor.storage import base_of


class OutsideWrites:
    """The tensors that a trace wrote without having been given them.

    Args:
        owned: the tensors that the trace may write, and the optimizers that it may step.
    """

    def __init__(self, owned=()) -> None:
        self._owned = set(map(id, owned))
        self._written: dict[int, tuple[Callable[[], Tensor | None], Snapshot]] = {}

    def touch(self, x) -> None:
        """Note that a tensor, or its ``.grad``, is about to be written, or that an optimizer is about to step."""
        if id(x) in self._owned:
            return
        if not isinstance(x, Tensor):
            raise _unnamed(f"{type(x).__name__}.step()", "an optimizer that is not in state=")
        if id(x) in self._written or is_traced(x):
            return
        self._written[id(x)] = weakref.ref(x), Snapshot(x, weakly=True)
        base = base_of(x)
        if base is not None:
            self.touch(base)

    @contextlib.contextmanager
    def watching(self):
        """Note every write within the block, and undo it after the block."""
        before, mode.touch = mode.touch, self.touch
        try:
            yield
        finally:
            mode.touch = before
            for ref, saved in self._written.values():
                saved.put_back(ref())

    def written(self) -> list[tuple[Tensor, Snapshot]]:
        """Return the tensors that live and were written, with what they were before."""
        found = [(ref(), saved) for ref, saved in self._written.values()]
        return [(x, saved) for x, saved in found if x is not None]

    def check(self, asked: str, returned: Collection[int] = ()) -> None:
        """Raise if a written tensor lives on without being one of the results.

        Args:
            asked: what was asked, for the error.
            returned: the ids of the results.

        Raises:
            AutogradError: the function changes a tensor that is not in ``state=``.
        """
        if self._left(returned):
            gc.collect()
        left = self._left(returned)
        if left:
            x = left[0]
            kind = "the grad of a tensor" if x.requires_grad and x.is_leaf else "a tensor"
            raise _unnamed(asked, f"it writes {kind} {x.dtype.name}{list(x.shape)} that is not in state=")
        self.check_storage(asked)

    def check_storage(self, asked: str) -> None:
        """Raise if a written tensor is gone, but others show its storage: ``w.detach().add_(1)`` writes ``w``.

        Raises:
            AutogradError: there is one.
        """
        if self._shown():
            gc.collect()
        if self._shown():
            raise _unnamed(asked, "it writes an alias of a tensor that is not in state=")

    def _left(self, returned: Collection[int]) -> list[Tensor]:
        return [x for x, _ in self.written() if id(x) not in returned]

    def _shown(self) -> bool:
        """Return whether somebody shows the storage of a written tensor that is gone."""
        return any(ref() is None and saved.storage() is not None for ref, saved in self._written.values())


def check_arguments(asked: str, arguments, tracers) -> None:
    """Raise if a traced function wrote to one of its arguments: the caller's tensor would not see it.

    Args:
        asked: what was asked, for the error.
        arguments: the tensors that the function was given.
        tracers: what they held before it ran.

    Raises:
        AutogradError: an argument holds another value now.
    """
    for x, before in zip(arguments, tracers):
        if payload(x) is not before:
            raise AutogradError(
                asked,
                f"it writes its argument {x.dtype.name}{list(x.shape)} in place",
                "a compiled program changes only the modules, optimizers and tensors that are named in state=",
                "return the new value, write to x.clone(), or name the tensor in state=",
            )


def _unnamed(asked: str, seen: str) -> AutogradError:
    return AutogradError(
        asked,
        seen,
        "a compiled program changes only the modules, optimizers and tensors that are named in state=",
        "sbpjax.compile(step, state=(model, optimizer))",
    )
