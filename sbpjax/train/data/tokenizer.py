"""Tokenizers of the `tokenizers` package: loading, training, vocabulary size, end-of-document token.

`SpecialTokens`: BERT's special tokens, and the assembly of its inputs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from sbpjax.errors import DataError
from sbpjax.utils.host import pip_install

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
    def from_tokenizer(cls, tokenizer: Any) -> SpecialTokens:
        """Return those of a tokenizer of the package `tokenizers`.

        Raises:
            DataError: it has no ``[PAD]``, ``[CLS]`` or ``[SEP]``.
        """
        found = {name: tokenizer.token_to_id(name) for name in NAMES}
        missing = [name for name in ("[PAD]", "[CLS]", "[SEP]") if found[name] is None]
        if missing:
            rule = "BERT's inputs are put together with [PAD], [CLS] and [SEP]"
            fix = "--model wordpiece trains a tokenizer with them; or SpecialTokens(pad=..., begin=..., end=...)"
            raise DataError("SpecialTokens.from_tokenizer(tokenizer)", f"no {', '.join(missing)}", rule, fix)
        mask = found["[MASK]"]
        return cls(found["[PAD]"], found["[CLS]"], found["[SEP]"], -1 if mask is None else mask)

    def join_sentences(self, first: Any, second: Any, width: int) -> dict[str, Any]:
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


MODELS = ("bpe", "wordpiece")
END_OF_DOCUMENT = "<|endoftext|>"  # of a tokenizer that is trained here
_ENDS = (END_OF_DOCUMENT, "<|end_of_text|>", "</s>", "<eos>", "[SEP]")


def package() -> Any:
    """Return the module `tokenizers`, which is an extra.

    Raises:
        DataError: the package is not installed.
    """
    try:
        import tokenizers  # type: ignore[import-not-found]  # of the extra `train`
    except ImportError:
        rule, fix = "text is cut into tokens by the package tokenizers", pip_install("train")
        raise DataError("a tokenizer", "tokenizers is not installed", rule, fix) from None
    return tokenizers


def read_tokenizer(path: str | os.PathLike) -> Any:
    """Return the tokenizer of a ``tokenizer.json``, or of a folder of Hugging Face that holds one.

    Raises:
        DataError: there is none, or it cannot be read.
    """
    file = os.path.join(path, "tokenizer.json") if os.path.isdir(path) else os.fspath(path)
    operation = f"read_tokenizer({os.fspath(path)!r})"
    if not os.path.isfile(file):
        rule = "a tokenizer is a file tokenizer.json, or a folder with one"
        fix = "the path of a tokenizer.json, such as the one in the model's folder; train_tokenizer trains one"
        raise DataError(operation, f"there is no file {file}", rule, fix)
    try:
        return package().Tokenizer.from_file(file)
    except DataError:
        raise
    except Exception as error:  # the package raises plain ones
        seen = f"{type(error).__name__}: {error}"
        raise DataError(operation, seen, f"{file} is a file that tokenizers wrote", "another file") from error


def train_tokenizer(texts: Iterable[str], vocabulary: int, show_progress: bool = False, *, model: str = "bpe") -> Any:
    """Return a tokenizer trained on texts.

    Args:
        texts: the training texts.
        vocabulary: the number of tokens, special ones included; short texts give fewer.
        show_progress: whether progress is printed.
        model: ``"bpe"``: a byte-level BPE, which encodes any text without loss;
            ``"wordpiece"``: pieces of words in lower case, with the special tokens of BERT.

    Raises:
        DataError: another model, or a `vocabulary` of BPE that is less than the 256 bytes and the end of a document.
    """
    its = package()
    if model == "wordpiece":
        tokenizer = its.Tokenizer(its.models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = its.normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = its.pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = its.decoders.WordPiece()
        trainer = its.trainers.WordPieceTrainer(
            vocab_size=vocabulary, special_tokens=list(NAMES), show_progress=show_progress
        )
    elif model == "bpe":
        if vocabulary < 257:
            rule = "256 bytes and the end of a document are tokens in any case"
            raise DataError("train_tokenizer(texts, vocabulary)", f"vocabulary={vocabulary}", rule, "257 or more")
        tokenizer = its.Tokenizer(its.models.BPE())
        tokenizer.pre_tokenizer = its.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = its.decoders.ByteLevel()
        trainer = its.trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=[END_OF_DOCUMENT],
            initial_alphabet=its.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=show_progress,
        )
    else:
        rule = f"models are {', '.join(MODELS)}"
        raise DataError("train_tokenizer(texts, vocabulary, model=...)", f"model={model!r}", rule, 'model="bpe"')
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def vocabulary_of(tokenizer: Any) -> int:
    """Return the highest token plus one."""
    return max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1


def end_of_document(tokenizer: Any, path: str | os.PathLike | None, name: str | None = None) -> int:
    """Return the token that ends a document.

    Args:
        tokenizer: the tokenizer.
        path: its file: a ``tokenizer_config.json`` beside it has ``eos_token``.
        name: the token's text, if the caller knows it.

    Raises:
        DataError: the tokenizer has no such token, or none of the usual ones.
    """
    names = (name,) if name is not None else (*_read_stated(path), *_ENDS)
    for each in names:
        token = tokenizer.token_to_id(each)
        if token is not None:
            return token
    rule = "documents end with a token of the tokenizer"
    raise DataError("the end of a document", f"none of {', '.join(names)}", rule, "--eod-token TOKEN")


def _read_stated(path: str | os.PathLike | None) -> list[str]:
    if path is None:
        return []
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    file = os.path.join(folder, "tokenizer_config.json")
    if not os.path.isfile(file):
        return []
    try:
        with open(file, encoding="utf-8") as opened:
            stated = json.load(opened)
        if not isinstance(stated, dict):
            raise ValueError(f"a {type(stated).__name__}")
    except (OSError, ValueError, RecursionError) as error:
        seen, rule = f"{type(error).__name__}: {str(error)[:200]}", f"{file} is a JSON object"
        raise DataError("the end of a document", seen, rule, "--eod-token TOKEN, or write the file anew") from None
    stated = stated.get("eos_token")
    stated = stated.get("content") if isinstance(stated, dict) else stated
    return [stated] if isinstance(stated, str) else []
