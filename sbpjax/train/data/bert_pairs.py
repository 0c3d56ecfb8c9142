"""`BertPretrainingDataset`: BERT pre-training samples, masked language modelling and sentence pair prediction.

A document is cut into windows of ``length - 3`` tokens, a window into two pieces, A and B, at a random place; where the
file has sentence boundaries, between two sentences. Then a pair gets one of two labels, half of the time 1:

    order   0: A B          1: B A                                      (sentence order, as ALBERT's)
    next    0: A B          1: A and a piece of another document        (next sentence, as BERT's)

Of the text's tokens, ``round(0.15 * n)`` and at least one are to be predicted: 80 of 100 of them are replaced by
``[MASK]``, 10 by a random token, 10 stay. All of it is a function of `seed` and the sample's number.

    [CLS] the [MASK] sat [SEP] on the house [SEP] [PAD]
    labels    cat 7..., mat for "house", -100 elsewhere          token_type_ids 0 0 0 0 0 1 1 1 1 0

Source: Devlin et al., "BERT", 2018, section 3.1 and appendix A; Lan et al., "ALBERT", 2019, section 3.1.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from sbpjax.errors import DataError

from .numbered import Shuffled
from .token_file import TokenFile
from .tokenizer import SpecialTokens

PAIR_TASKS = ("order", "next")
_HIDDEN, _CHANGED = 0.8, 0.1  # of the tokens to be predicted


class BertPretrainingDataset(Shuffled):
    """Windows of documents as BERT pre-training samples, each a dict of the arguments of `BertForPreTraining.loss`.

    Args:
        file: a `TokenFile`, or its path without ``.bin``. Its documents have no special tokens.
        length: the input length, special tokens included; shorter inputs are padded.
        special: the special tokens.
        vocabulary: the size of the vocabulary; random tokens are below it.
        pair_task: ``"order"`` or ``"next"``.
        samples: the number of samples of a run, over as many epochs as needed; one epoch if not given.
        seed: of the order, the pieces and the masks, 0 or more.
        shuffle: False for the order of the file.
        share: of the tokens to be predicted.
        continues: `(vocabulary,)` bools: which tokens continue the word before them (``##ing``). Then whole words are
            masked.

    Raises:
        DataError: an argument does not fit, or the file has no document of two tokens.

    Example:
        >>> with TokenFileWriter("letters", token_dtype(256)) as writer:
        ...     writer.add(list(b"abcdefghij"))
        >>> pairs = BertPretrainingDataset("letters", 16, SpecialTokens(0, 1, 2, 3), vocabulary=256)
        >>> sample = pairs[0]
        >>> sample["input_ids"].shape, int((sample["labels"] >= 0).sum()), int(sample["attention_mask"].sum())
        ((16,), 2, 13)
    """

    def __init__(
        self,
        file: TokenFile | str | os.PathLike,
        length: int,
        special: SpecialTokens,
        vocabulary: int,
        *,
        pair_task: str = "order",
        samples: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        share: float = 0.15,
        continues: Any = None,
    ) -> None:
        self.file = file if isinstance(file, TokenFile) else TokenFile(file)
        self.length, self.special, self.vocabulary = length, special, vocabulary
        self.pair_task, self.share = pair_task, share
        self.continues = None if continues is None else np.asarray(continues, bool)
        self._check()
        self._body = length - 3
        # A last window of one token cannot be cut in two, and is left out.
        self._ends = np.cumsum((self.file.lengths + self._body - 2) // self._body)
        if not self._ends[-1:].any():
            rule = "a document has two tokens at least, to be cut in two"
            self._refuse(f"{self.file.prefix}.bin has {len(self.file)} documents, none of them so long", rule, "longer")
        self._text = np.setdiff1d(np.arange(vocabulary), special)  # the candidates for random tokens
        super().__init__(int(self._ends[-1]), samples, seed, shuffle)

    def _refuse(self, seen: str, rule: str, fix: str) -> None:
        raise DataError("BertPretrainingDataset(file, length, special, vocabulary)", seen, rule, fix)

    def _check(self) -> None:
        if self.length < 5:
            self._refuse(f"length={self.length}", "two tokens and three special ones make 5 at least", "length=128")
        if self.pair_task not in PAIR_TASKS:
            self._refuse(f"pair_task={self.pair_task!r}", "pair tasks are 'order' and 'next'", "pair_task='order'")
        if not 0 < self.share < 1:
            self._refuse(f"share={self.share}", "the share of tokens to predict is between 0 and 1", "share=0.15")
        if not 0 <= min(self.special) or max(self.special) >= self.vocabulary:
            rule = f"special tokens are from 0 to vocabulary - 1 = {self.vocabulary - 1}, the mask too"
            self._refuse(f"{self.special}", rule, "SpecialTokens.from_tokenizer(tokenizer)")
        if self.continues is not None and self.continues.shape != (self.vocabulary,):
            rule = f"continues has a bool for each of {self.vocabulary} tokens"
            self._refuse(f"shape {self.continues.shape}", rule, "np.zeros(vocabulary, bool)")

    def sample(self, number: int) -> dict[str, Any]:
        """Return the arguments of `BertForPreTraining.loss`.

        ``input_ids``, ``labels``, ``token_type_ids`` and ``attention_mask`` are `(length,)`, ``next_sentence_label`` is
        0 or 1.
        """
        random = self.chance(number)
        document, begin = self._window(self.index(number))
        window = self._piece(document, begin, self._body)
        cut = self._cut(document, begin, len(window), random)
        first, second = window[:cut], window[cut:]
        label = int(random.integers(2))
        if label and self.pair_task == "order":
            first, second = second, first
        elif label:
            second = self._piece_of_another_document(document, self._body - cut, random)
        sample = self.special.join_sentences(first, second, self.length)
        sample["labels"] = self._mask_tokens(sample["input_ids"], len(first), len(second), random)
        return sample | {"next_sentence_label": np.int64(label)}

    def _window(self, index: int) -> tuple[int, int]:
        """Return the document of a window, and where in it the window begins."""
        document = int(np.searchsorted(self._ends, index, side="right"))
        before = int(self._ends[document - 1]) if document else 0
        return document, (index - before) * self._body

    def _cut(self, document: int, begin: int, count: int, random: np.random.Generator) -> int:
        places = self.file.sentences(document) - begin
        places = places[(places > 0) & (places < count)]
        return int(random.choice(places)) if len(places) else int(random.integers(1, count))

    def _piece_of_another_document(self, document: int, count: int, random: np.random.Generator) -> np.ndarray:
        """Return a piece of another document; of the same one where there is no other."""
        low = int(self._ends[document - 1]) if document else 0
        high = int(self._ends[document])
        others = self.per_epoch - (high - low)
        drawn = int(random.integers(others or self.per_epoch))
        other, begin = self._window(drawn + (high - low if others and drawn >= low else 0))
        first, end = self.file.span(other)
        begin += int(random.integers(max(end - first - begin - count, 0) + 1))
        return self._piece(other, begin, count)

    def _piece(self, document: int, begin: int, count: int) -> np.ndarray:
        """Return tokens of a document from a place in it, `count` or fewer at its end."""
        first, end = self.file.span(document)
        return self.file.read(first + begin, min(first + begin + count, end)).astype(np.int64)

    def _mask_tokens(self, tokens: np.ndarray, first: int, second: int, random: np.random.Generator) -> np.ndarray:
        """Mask some tokens in place, and return the targets."""
        places = np.concatenate([np.arange(1, 1 + first), np.arange(2 + first, 2 + first + second)])
        count = max(1, round(self.share * len(places)))
        chosen = (
            random.permutation(places)[:count] if self.continues is None else self._words(tokens, places, count, random)
        )
        targets = np.full(len(tokens), -100, np.int64)
        targets[chosen] = tokens[chosen]
        kind = random.random(len(chosen))
        others = self._text[random.integers(len(self._text), size=len(chosen))]
        changed = np.where(kind < _HIDDEN + _CHANGED, others, tokens[chosen])
        tokens[chosen] = np.where(kind < _HIDDEN, self.special.mask, changed)
        return targets

    def _words(self, tokens: np.ndarray, places: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
        """Return the places of whole words, up to `count`; of one word, if the first is longer."""
        assert self.continues is not None
        begins = ~self.continues[tokens[places]] | (np.diff(places, prepend=-1) > 1)
        begins[0] = True
        words = np.split(places, np.flatnonzero(begins)[1:])
        chosen: list[np.ndarray] = []
        left = count
        for word in random.permutation(len(words)):
            if len(words[word]) <= left or not chosen:
                chosen.append(words[word])
                left -= len(words[word])
            if left <= 0:
                break
        return np.concatenate(chosen)
