"""`StopStrings`: ends a generated sequence when its text contains a stop string."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sbpjax.errors import OpValueError


class StopStrings:
    """Finds the first occurrence of any stop string in the text of the tokens.

    Args:
        strings: them.
        decode: the text of a list of tokens, such as the method `decode` of a tokenizer; None if there are no strings.

    Raises:
        OpValueError: a string is empty, or nothing decodes.

    Example:
        >>> from sbpjax.models.stopping import StopStrings
        >>> StopStrings(["ab"], bytes.decode).end(bytes(b"xxabab"))
        4
    """

    def __init__(self, strings: Sequence[str], decode: Callable[[list[int]], str] | None):
        self.strings, self.decode = tuple(strings), decode
        if isinstance(strings, str) or not all(self.strings) or (self.strings and decode is None):
            seen = f"stop_strings={strings!r}, decode={decode!r}"
            rule = "stop strings are some strings that are not empty, with a decoder of tokens"
            fix = "stop_strings=['\\n'], decode=tokenizer.decode"
            raise OpValueError("generate(...)", seen, rule, fix)

    def end(self, tokens: Sequence[int]) -> int | None:
        """Return how many tokens there are up to the one that completes a string; None if there is none."""
        if not self._has(tokens):
            return None
        few, enough = 0, len(tokens)  # so many have no string, so many have one
        while enough - few > 1:
            half = (few + enough) // 2
            few, enough = (few, half) if self._has(tokens[:half]) else (half, enough)
        return enough

    def _has(self, tokens: Sequence[int]) -> bool:
        if not self.strings or self.decode is None:
            return False
        text = self.decode(tokens)  # type: ignore[arg-type]
        return any(string in text for string in self.strings)
