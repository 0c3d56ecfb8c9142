"""Anomaly detection: raises at the first NaN gradient in backward, with the source line of its forward.

    with flow.autograd.detect_anomaly():
        loss = model(x).log().mean()
        loss.backward()  # an error at the first node that gives a NaN, with the line of its forward

Nodes are numbered as they are recorded; while detection is on, the source line is stored by that number. So a program
without detection pays nothing, one with it reads every gradient back.
"""

from __future__ import annotations

import contextlib
from typing import Any

from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.runtime.user_line import user_line
from sbpjax.errors import AutogradError

from ..nodes import node as _node
from ..nodes import op_node as _op_node

_MOST_LINES = 100_000  # of a program that leaves detection on, the lines of its last nodes
_sequence = _node.sequence
_lines: dict[int, str] = {}
_enabled = False
checks = False  # whether the walk calls `check`


def is_anomaly_enabled() -> bool:
    """Return whether detection is on."""
    return _enabled


class set_detect_anomaly(contextlib.ContextDecorator):  # PyTorch's name
    """Turn detection on or off, for good or for a ``with`` block; as `torch.autograd.set_detect_anomaly`.

    Args:
        mode: whether it is on.
        check_nan: False records the lines only, which errors in backward then name.

    Example:
        >>> with flow.autograd.set_detect_anomaly(True):
        ...     print(flow.autograd.is_anomaly_enabled())
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _enabled, checks
        _set(bool(mode), bool(mode) and check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        _set(*self._before)


class detect_anomaly(set_detect_anomaly):  # PyTorch's name
    """Raise at the first NaN that a backward in this block gives, with the line of the forward; slow, for debugging.

    The forward runs in the block, too. The backward of an `nn.Graph` is inside its program and is not checked: run
    the step eagerly.

    Args:
        check_nan: False records the lines only.

    Raises:
        AutogradError: (a RuntimeError) from ``backward()``, which op gave a NaN.

    Example:
        >>> x = flow.zeros(2, requires_grad=True)
        >>> with flow.autograd.detect_anomaly():
        ...     (x / x).sum().backward()
        Traceback (most recent call last):
        ...
        sbpjax.errors.AutogradError: backward through div_backward...: nan in its gradient 1, of shape [2]; ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)


def check(node: Any, gradients: tuple) -> None:
    """Check the gradients of a node's backward."""
    # Inside a trace there are no values.
    if not trace_state_clean():
        return
    for number, grad in enumerate(gradients):
        if grad is None or grad.is_meta or not (grad.is_floating_point() or grad.is_complex()):
            continue
        if grad.isnan().any().item():
            raise AutogradError(
                f"backward through {node.name()}",
                f"nan in its gradient {number}, of shape {list(grad.shape)}; the forward ran at {line_of(node)}",
                "no gradient is nan while detect_anomaly is on",
                "look at the inputs there: a zero divisor, the root of zero, the logarithm of zero",
            )


def line_of(node: Any) -> str:
    """Return ``file:line`` where a node was recorded."""
    return _lines.get(node.seq, "a line that was not noted: run the forward inside detect_anomaly")


def _set(enabled: bool, looks: bool) -> None:
    global _enabled, checks
    _enabled, checks = enabled, looks
    _node.sequence = _op_node.sequence = _note_line if enabled else _sequence
    if not enabled:
        _lines.clear()


def _note_line() -> int:
    number = _sequence()
    _lines[number] = user_line()
    if len(_lines) > _MOST_LINES:
        del _lines[next(iter(_lines))]
    return number
