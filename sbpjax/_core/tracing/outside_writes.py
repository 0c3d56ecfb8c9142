"""`OutsideWrites`: refuse writes of a trace to tensors outside ``state=``.

A trace runs the function once on tracers. ``model.weight.mul_(2)`` with ``model`` in ``state=`` is an output of the
program; an unnamed tensor would be left holding a tracer, and later calls would not write it at all. So every
write of a trace is noted (`mode.touch`), undone at its end, and refused if the tensor lives on: tensors that the
function made for itself are gone by then. A graph takes those that hold plain values, such as free running statistics,
into its state, and is traced again.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Collection

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.storage.payload import Snapshot, is_traced, kept_as, payload
from sbpjax._core.tensor.storage.storage import base_of
from sbpjax.errors import AutogradError

_RULE = "a compiled program changes only the modules, optimizers and tensors of its state"
OWN_STATE = "sbpjax.compile(step, state=(model, optimizer, tensor))"


class OutsideWrites:
    """The tensors that a trace wrote without having been given them.

    Args:
        owned: the tensors that the trace may write, and the optimizers that it may step.
        fix: how the user gives it others.
    """

    def __init__(self, owned=(), fix: str = OWN_STATE) -> None:
        self._owned = set(map(id, owned))
        self._fix = fix
        self._written: dict[int, tuple[Callable[[], Tensor | None], Snapshot]] = {}

    def touch(self, x) -> None:
        """Note that a tensor, or its ``.grad``, is about to be written, or that an optimizer is about to step."""
        if id(x) in self._owned:
            return
        if not isinstance(x, Tensor):
            raise self._unnamed_error(f"{type(x).__name__}.step()", "an optimizer that is not in its state")
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

    def written_tensors(self) -> list[tuple[Tensor, Snapshot]]:
        """Return the written tensors that still live, with their former contents."""
        found = [(ref(), saved) for ref, saved in self._written.values()]
        return [(x, saved) for x, saved in found if x is not None]

    def plain(self, returned: Collection[int] = ()) -> list[Tensor]:
        """Return the written tensors that live on, if all of them hold values of their own and no gradients."""
        if self._unreturned_tensors(returned):
            gc.collect()
        left = self._unreturned_tensors(returned)
        return [] if any(x.requires_grad or base_of(x) is not None or kept_as(x) for x in left) else left

    def check(self, operation: str, returned: Collection[int] = ()) -> None:
        """Raise if a written tensor lives on without being one of the results."""
        if self._unreturned_tensors(returned):
            gc.collect()
        left = self._unreturned_tensors(returned)
        if left:
            x = left[0]
            kind = "the grad of a tensor" if x.requires_grad and x.is_leaf else "a tensor"
            raise self._unnamed_error(
                operation, f"it writes {kind} {x.dtype.name}{list(x.shape)} that is not in its state"
            )
        self.check_storage(operation)

    def check_storage(self, operation: str) -> None:
        """Raise if a written tensor is gone, but others show its storage: ``w.detach().add_(1)`` writes ``w``."""
        if self._is_shown():
            gc.collect()
        if self._is_shown():
            raise self._unnamed_error(operation, "it writes an alias of a tensor that is not in its state")

    def _unreturned_tensors(self, returned: Collection[int]) -> list[Tensor]:
        return [x for x, _ in self.written_tensors() if id(x) not in returned]

    def _is_shown(self) -> bool:
        """Return whether a live view shows the storage of a written tensor that is gone."""
        return any(ref() is None and saved.storage() is not None for ref, saved in self._written.values())

    def _unnamed_error(self, operation: str, seen: str) -> AutogradError:
        return AutogradError(operation, seen, _RULE, self._fix)


def check_arguments(operation: str, arguments, tracers) -> None:
    """Raise if a traced function wrote to one of its arguments: the caller's tensor would not see it.

    Args:
        operation: the user's request, for the error.
        arguments: the tensors that the function was given.
        tracers: their contents before it ran.

    Raises:
        AutogradError: an argument holds another value now.
    """
    for x, before in zip(arguments, tracers):
        if payload(x) is not before:
            raise AutogradError(
                operation,
                f"it writes its argument {x.dtype.name}{list(x.shape)} in place",
                _RULE,
                "return the new value, write to x.clone(), or name the tensor in state=",
            )
