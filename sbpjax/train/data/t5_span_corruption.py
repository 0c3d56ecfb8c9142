"""`T5SpanCorruptionDataset`: T5 span corruption samples, text without some spans and the spans as targets.

    text      Thank you for inviting me to your party last week .
    input_ids Thank you <x> me to your party <y> week . </s>
    labels    <x> for inviting <y> last </s>

Of n tokens ``round(0.15 * n)`` are taken out, in ``round(0.15 * n / 3)`` spans: so both lengths are a function of n
alone, and n is chosen so that the inputs are `length` long. All samples have these shapes, no padding: `lengths`
computes them, e.g. 568 tokens of text for 512 of input and 114 of target.

Source: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", 2019,
section 3.1.4.
"""

from __future__ import annotations

import os

import numpy as np

from sbpjax.errors import DataError

from .numbered import Shuffled
from .token_file import TokenFile


def _spans(tokens: int, density: float, mean_span: float) -> tuple[int, int]:
    """Return the number of removed tokens and of spans for a number of tokens; at least one token stays."""
    taken = min(max(round(tokens * density), 1), tokens - 1)
    return taken, min(max(round(taken / mean_span), 1), taken, tokens - taken)


def lengths(length: int, density: float = 0.15, mean_span: float = 3.0) -> tuple[int, int]:
    """Return the number of text tokens for an input of a given length, and the number of targets.

    Args:
        length: of the input, with a sentinel per span and the end.
        density: share of the tokens that is taken out.
        mean_span: tokens of a span, on average.

    Returns:
        The largest number of tokens whose input is not longer than `length`, and the length of their targets. Where
        `length` is skipped (one token more makes two more of input) the input is one shorter.

    Example:
        >>> lengths(512), lengths(1024)
        ((568, 114), (1137, 229))
    """

    def of(tokens: int) -> tuple[int, int]:
        taken, spans = _spans(tokens, density, mean_span)
        return tokens - taken + spans + 1, taken + spans + 1

    tokens = 2
    while of(tokens + 1)[0] <= length:
        tokens += 1
    return tokens, of(tokens)[1]


class T5SpanCorruptionDataset(Shuffled):
    """Tokens of a file as samples with corrupted spans, each a dict of the arguments of T5's loss.

    The documents are one line of tokens, as in `PackedTokens`; a sample is as many of them as fit.

    Args:
        file: a `TokenFile`, or its path without ``.bin``.
        length: the input length.
        end: the token after inputs and targets.
        sentinel: the token of the first span; the one of the second is the number below it, and so on.
        samples: the number of samples of a run, over as many epochs as needed; one epoch if not given.
        seed: of the order and the spans, 0 or more.
        shuffle: False for the order of the file.
        density: share of the tokens that is taken out.
        mean_span: tokens of a span, on average.

    Attributes:
        text_length: tokens of text of a sample.
        input_length: of ``input_ids``.
        target_length: of ``labels``.

    Raises:
        DataError: an argument does not fit, or the file is shorter than a sample.

    Example:
        >>> with TokenFileWriter("letters", token_dtype(256)) as writer:
        ...     writer.add(list(b"abcdefghij" * 4))
        >>> spans = T5SpanCorruptionDataset("letters", 16, end=1, sentinel=255)
        >>> sample = spans[0]
        >>> spans.text_length, sample["input_ids"].shape, sample["labels"].shape
        (17, (16,), (5,))
    """

    def __init__(
        self,
        file: TokenFile | str | os.PathLike,
        length: int,
        *,
        end: int,
        sentinel: int,
        samples: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        density: float = 0.15,
        mean_span: float = 3.0,
    ) -> None:
        self.file = file if isinstance(file, TokenFile) else TokenFile(file)
        if length < 4 or not 0 < density < 1 or mean_span < 1:
            seen, rule = (
                f"length={length}, density={density}, mean_span={mean_span}",
                ("inputs have 4 tokens at least, density is between 0 and 1, spans have 1 token at least"),
            )
            self._refuse(seen, rule, "T5SpanCorruptionDataset(file, 512, density=0.15, mean_span=3)")
        self.end, self.sentinel = end, sentinel
        self.text_length, self.target_length = lengths(length, density, mean_span)
        self._taken, self._count = _spans(self.text_length, density, mean_span)
        self.input_length = self.text_length - self._taken + self._count + 1
        if sentinel < self._count - 1:
            rule = f"each of {self._count} spans has a sentinel, down to sentinel - {self._count - 1} ≥ 0"
            self._refuse(f"sentinel={sentinel}", rule, "the highest token, or a shorter length")
        tokens = self.file.tokens.size
        if tokens < self.text_length:
            rule = f"a sample of length={length} has {self.text_length} tokens of text"
            self._refuse(f"{self.file.prefix}.bin has {tokens} tokens", rule, "a shorter length, or another file")
        super().__init__(tokens // self.text_length, samples, seed, shuffle)

    def _refuse(self, seen: str, rule: str, fix: str) -> None:
        raise DataError("T5SpanCorruptionDataset(file, length)", seen, rule, fix)

    def sample(self, number: int) -> dict[str, np.ndarray]:
        """Return ``input_ids`` `(input_length,)` and ``labels`` `(target_length,)`."""
        random, begin = self.chance(number), self.index(number) * self.text_length
        text = self.file.read(begin, begin + self.text_length).astype(np.int64)
        kept = _parts(self.text_length - self._taken, self._count, random)
        taken = _parts(self._taken, self._count, random)
        ends = np.cumsum(np.stack([kept, taken], 1).reshape(-1))  # kept, taken, kept, taken, …
        pieces = np.split(text, ends[:-1])
        tokens, targets = [], []
        for i in range(self._count):
            sentinel = np.array([self.sentinel - i])
            tokens += [pieces[2 * i], sentinel]
            targets += [sentinel, pieces[2 * i + 1]]
        end = np.array([self.end])
        return {"input_ids": np.concatenate([*tokens, end]), "labels": np.concatenate([*targets, end])}


def _parts(total: int, count: int, random: np.random.Generator) -> np.ndarray:
    """Return `count` numbers of at least 1 with a sum, all such lists being as likely."""
    cuts = np.sort(random.choice(total - 1, count - 1, replace=False)) + 1
    return np.diff(cuts, prepend=0, append=total)
