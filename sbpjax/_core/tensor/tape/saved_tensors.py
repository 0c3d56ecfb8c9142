"""Saved-tensor hooks: `saved_tensors_hooks` and `save_on_cpu` convert the values that ops save for backward.

While hooks are set, the saved values of an op go through ``pack`` when it is recorded and through ``unpack`` when
backward needs them (`op_node.pack`). Inside compiled programs the compiler chooses the kept values, and hooks are not
called.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core.tensor.dispatch.op import Op
from sbpjax._core.tensor.handle.tensor import Tensor, wrap_any
from sbpjax._core.tensor.nodes import op_node
from sbpjax.errors import AutogradError

from ..nodes.node import Node as Node
from ..nodes.node import RemovableHandle, table_of


class _Stack(threading.local):
    def __init__(self) -> None:
        self.hooks: list[tuple[Callable, Callable]] = []
        self.refused: list[str] = []


_stack = _Stack()
_active = 0  # contexts in all threads
_lock = threading.Lock()


def active_hooks() -> tuple[Callable, Callable] | None:
    """Return the hooks of the innermost context of this thread."""
    return _stack.hooks[-1] if _stack.hooks else None


class Packed:
    """Saved payloads in the form that a hook gave them."""

    __slots__ = ("_step", "_unpack", "_values")

    def __init__(self, op: Op, arrays: tuple, layouts: tuple | None, hooks: tuple[Callable, Callable]) -> None:
        pack, self._unpack = hooks
        pairs = list(zip(arrays, layouts or (None,) * len(arrays), strict=True))
        self._step = _order(op, len(pairs))
        held, _stack.hooks = _stack.hooks, []  # a hook's own ops are not packed
        try:
            values = [
                _SavedNumber(a) if not hasattr(a, "shape") else pack(wrap_any(a, lay))
                for a, lay in pairs[:: self._step]
            ]
        finally:
            _stack.hooks = held
        self._values = values

    def unpack_payloads(self, operation: str) -> tuple:
        """Return the payloads for the backward of this name."""
        found = []
        for packed in self._values:
            if packed.__class__ is _SavedNumber:
                found.append(packed.value)
                continue
            tensor = self._unpack(packed)
            if not isinstance(tensor, Tensor):
                raise AutogradError(
                    f"backward through {operation}",
                    f"an unpack hook that returned a {type(tensor).__name__}",
                    "unpack returns a tensor of the value that pack was given",
                    "return a tensor",
                )
            found.append(tensor._fresh()._array)
        return tuple(found[:: self._step])


def _order(op: Op, count: int) -> int:
    """Return -1 where hooks see the second of two operands first: PyTorch saves those of ``x * y`` and ``x @ y`` so."""
    return -1 if count == 2 and {*list(inspect.signature(op.fn).parameters)[:2]} == {"x", "y"} else 1


def _pack(op: Op, arrays: tuple, layouts: tuple | None) -> tuple | Packed:
    """Return the packed form of some payloads of an op in this thread."""
    return Packed(op, arrays, layouts, _stack.hooks[-1]) if _stack.hooks else arrays


class _SavedNumber:
    """A saved number, which is not packed."""

    __slots__ = ("value",)

    def __init__(self, value) -> None:
        self.value = value


def _change_active(by: int) -> None:
    global _active
    with _lock:
        _active += by
        # One global for all threads, so that recording without hooks costs one comparison with None; a thread without
        # hooks of its own finds its stack empty in `_pack`.
        op_node.pack = _pack if _active else None


class saved_tensors_hooks:
    """Convert the values that ops save for backward, within the block.

    Args:
        pack_hook: called with each tensor that is saved; returns anything.
        unpack_hook: called with the packed value when backward needs the tensor; returns the tensor.

    Example:
        >>> with saved_tensors_hooks(lambda x: x.numpy(), sbpjax.from_numpy):
        ...     y = x.exp().sum()
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> saved_tensors_hooks:
        if _stack.refused:
            raise AutogradError(
                "saved_tensors_hooks(...)", "a block that disables them", _stack.refused[-1], "leave the block"
            )
        _stack.hooks.append((self.pack_hook, self.unpack_hook))
        _change_active(1)
        return self

    def __exit__(self, *exc) -> None:
        _stack.hooks.pop()
        _change_active(-1)


class save_on_cpu(saved_tensors_hooks):
    """Keep the values that ops save for backward in host memory, within the block.

    Args:
        pin_memory: accepted.
        device_type: accepted.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(x: Tensor) -> tuple:
            return (x, None) if x.is_global else (x.cpu(), x.device)

        def unpack(packed: tuple) -> Tensor:
            x, device = packed
            return x if device is None else x.to(device)

        super().__init__(pack, unpack)


class disable_saved_tensors_hooks:
    """Make `saved_tensors_hooks` an error with this text, within the block."""

    def __init__(self, error_message: str) -> None:
        self._text = error_message

    def __enter__(self) -> None:
        _stack.refused.append(self._text)

    def __exit__(self, *exc) -> None:
        _stack.refused.pop()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all"):
    """Call ``fn`` once the gradients of some tensors are known.

    Args:
        tensors: tensors that require grad.
        fn: called with the list of gradients (None where there is none); with ``mode="any"``, with the first one.
        mode: ``"all"`` or ``"any"``.

    Returns:
        A handle; ``remove()`` takes the hook away.
    """
    found: dict[int, Tensor] = {}

    def hook_of(i: int):
        def hook(grad):
            if mode == "any":
                if not found:
                    found[i] = grad
                    fn(grad)
                return
            found[i] = grad
            if len(found) == len(tensors):
                grads = [found[k] for k in range(len(tensors))]
                found.clear()
                fn(grads)

        return hook

    handles: list[RemovableHandle] = []
    for i, x in enumerate(tensors):
        table = table_of(x._fresh()._edge)
        handles.append(table.add(table.on_output(x._idx), hook_of(i)))
    return _Handles(handles)


class _Handles:
    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()
