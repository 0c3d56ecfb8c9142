"""`checkpoint_sequential`: checkpointing of a chain of modules: only the values between segments are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sbpjax.nn.containers import Sequential

from .checkpoint import checkpoint


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    *,
    preserve_rng_state: bool = True,
) -> Any:
    """Run functions one after the other; backward runs all segments but the last again.

    Args:
        functions: a `Sequential`, or functions of one value.
        segments: into how many parts to cut them.
        input: the input of the first.
        use_reentrant: accepted for PyTorch's spelling.
        preserve_rng_state: draw the same random numbers again.
    """
    parts: Sequence[Callable] = list(functions.children()) if isinstance(functions, Sequential) else list(functions)
    size = len(parts) // segments
    for begin in range(0, size * (segments - 1), size):
        segment = _Chain(*parts[begin : begin + size])
        input = checkpoint(segment, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _Chain(*parts[size * (segments - 1) :])(input)


class _Chain:
    """Functions run one after the other, with the parameters of those that are modules."""

    def __init__(self, *parts: Callable) -> None:
        self._parts = parts

    def __call__(self, value: Any) -> Any:
        for part in self._parts:
            value = part(value)
        return value

    def parameters(self) -> Iterator[Any]:
        """Give the parameters of the modules among the functions."""
        for part in self._parts:
            if hasattr(part, "parameters"):
                yield from part.parameters()  # type: ignore[union-attr]
