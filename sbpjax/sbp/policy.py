"""Boxing policy: allow, report or forbid automatic conversions by eager ops.

Automatic boxing is convenient and sometimes a mistake: ``with boxing_policy("warn")`` names every conversion of an
eager op, ``with boxing_policy("error")`` refuses it before anything runs. Conversions that move no bytes pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from sbpjax._core.runtime.user_line import user_line, warn
from sbpjax.errors import BoxingError, BoxingWarning, SbpError


class _Policy:
    __slots__ = ("mode",)

    def __init__(self) -> None:
        self.mode = "auto"


current = _Policy()


def boxing_policy(mode: str) -> AbstractContextManager[None]:
    """Return a context that sets the boxing policy within its block.

    Args:
        mode: ``"auto"`` (convert silently), ``"warn"`` (convert and warn), ``"error"`` (raise `BoxingError`).

    Raises:
        SbpError: unknown mode.
    """
    if mode not in ("auto", "warn", "error"):
        raise SbpError(
            f"boxing_policy({mode!r})", repr(mode), 'the mode is "auto", "warn" or "error"', 'boxing_policy("warn")'
        )
    return _scoped_mode(mode)


@contextmanager
def _scoped_mode(mode: str) -> Iterator[None]:
    before, current.mode = current.mode, mode
    try:
        yield
    finally:
        current.mode = before


def check(option: str, boxings) -> None:
    """Apply the policy to the conversions of one op, before it runs."""
    moving = [b for b in boxings if b.bytes]
    if current.mode == "auto" or not moving:
        return
    text = "; ".join(str(b) for b in moving)
    if current.mode == "warn":
        warn(f"{option} at {user_line()} boxes {text}", BoxingWarning)
        return
    raise BoxingError(
        option,
        text,
        f'boxing_policy("error") allows no conversion that moves data; this moves {sum(b.bytes for b in moving)} B',
        "bring the inputs to fitting layouts with to_global(sbp=...), or use boxing_policy('auto')",
    )
