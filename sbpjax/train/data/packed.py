"""`PackedTokens`: next-token prediction samples of equal length, cut from concatenated documents.

The documents of a file are one line of tokens, cut every `length` tokens; a sample has one token more, so that each of
its inputs has a target. Of 10 tokens with length 4:

    tokens   a b c d e f g h i j
    sample 0 a b c d e                      inputs a b c d, targets b c d e
    sample 1         e f g h i              inputs e f g h, targets f g h i
                                            j is left out

There is no padding, no token is an input twice in an epoch, and less than a sample is left out. Samples cross the
borders of documents: write the documents with an end-of-document token.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from sbpjax.errors import DataError

from .numbered import Shuffled
from .token_file import TokenFile


class PackedTokens(Shuffled):
    """The tokens of a file as samples ``(inputs, targets)``, reshuffled in every epoch.

    The order is a function of `seed` and the epoch alone, and sample i is computed without the earlier ones.
    Give it to a `DataLoader` with ``shuffle=False``.

    Args:
        file: a `TokenFile`, or its path without ``.bin``.
        length: the number of tokens of an input.
        samples: the number of samples of a run, over as many epochs as needed; one epoch if not given.
        seed: of the order, 0 or more.
        shuffle: False for the order of the file.
        dtype: of both arrays.

    Attributes:
        per_epoch: the number of samples of an epoch.

    Raises:
        DataError: the file has fewer than ``length + 1`` tokens, or cannot be read.

    Example:
        >>> with TokenFileWriter("letters", token_dtype(256)) as writer:
        ...     writer.add(list(b"abcdefghij"))
        >>> pieces = PackedTokens("letters", length=4, shuffle=False)
        >>> len(pieces), pieces[1]
        (2, (array([101, 102, 103, 104]), array([102, 103, 104, 105])))
    """

    def __init__(
        self,
        file: TokenFile | str | os.PathLike,
        length: int,
        *,
        samples: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        dtype: Any = np.int64,
    ) -> None:
        self.file = file if isinstance(file, TokenFile) else TokenFile(file)
        tokens = self.file.tokens.size
        if not 1 <= length < tokens:
            rule = f"a sample has length + 1 = {length + 1} tokens, at least 2, and the file has to have as many"
            seen = f"length={length}, {self.file.prefix}.bin has {tokens} tokens"
            raise DataError("PackedTokens(file, length)", seen, rule, f"length={max(tokens - 1, 1)}, or another file")
        super().__init__((tokens - 1) // length, samples, seed, shuffle)
        self.length, self.dtype = length, np.dtype(dtype)

    def sample(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return inputs and targets, ``(length,)`` each, of the sample of a number."""
        begin = self.index(number) * self.length
        piece = self.file.read(begin, begin + self.length + 1).astype(self.dtype)
        return piece[:-1], piece[1:]
