"""`SpecialTokens`: BERT's special tokens, and the assembly of its inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sbpjax.errors import DataError

NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class SpecialTokens(NamedTuple):
    """Special tokens of a BERT.

    Attributes:
        pad: the padding token.
        begin: precedes the first sentence, ``[CLS]``.
        end: follows each sentence, ``[SEP]``.
        mask: replaces a hidden token; -1 for tokenizers without one.

    Example:
        >>> SpecialTokens(pad=0, begin=2, end=3, mask=4).mask
        4
    """

    pad: int
    begin: int
    end: int
    mask: int = -1

    @classmethod
    def of(cls, tokenizer: Any) -> SpecialTokens:
        """Return those of a tokenizer of the package `tokenizers`.

        Raises:
            DataError: it has no ``[PAD]``, ``[CLS]`` or ``[SEP]``.
        """
        found = {name: tokenizer.token_to_id(name) for name in NAMES}
        missing = [name for name in ("[PAD]", "[CLS]", "[SEP]") if found[name] is None]
        if missing:
            rule = "BERT's inputs are put together with [PAD], [CLS] and [SEP]"
            fix = "--model wordpiece trains a tokenizer with them; or SpecialTokens(pad=..., begin=..., end=...)"
            raise DataError("SpecialTokens.of(tokenizer)", f"no {', '.join(missing)}", rule, fix)
        mask = found["[MASK]"]
        return cls(found["[PAD]"], found["[CLS]"], found["[SEP]"], -1 if mask is None else mask)

    def joined(self, first: Any, second: Any, width: int) -> dict[str, Any]:
        """Return a sentence, or two, as an input of equal length.

        Args:
            first: tokens of a sentence, `(m,)`.
            second: of another, `(n,)`; None for none.
            width: the input length: ``m + 2``, with two sentences ``m + n + 3``, or more.

        Returns:
            ``input_ids``, ``token_type_ids`` (0, and 1 in the second sentence and its end) and ``attention_mask`` (0 in
            the padding), `(width,)` int64 each.
        """
        both = [[self.begin], first, [self.end]] + ([] if second is None else [second, [self.end]])
        input_ids, token_type_ids, attention_mask = (
            np.full(width, self.pad),
            np.zeros(width, np.int64),
            np.zeros(width, np.int64),
        )
        count, second_start = sum(map(len, both)), len(first) + 2
        input_ids[:count] = np.concatenate(both)
        token_type_ids[second_start:count] = attention_mask[:count] = 1
        return {
            "input_ids": input_ids.astype(np.int64),
            "token_type_ids": token_type_ids,
            "attention_mask": attention_mask,
        }
