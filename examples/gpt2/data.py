"""Data of the GPT-2 example: Python's sources and its language reference, as files of tokens.

The first run trains a byte-level BPE on the text and writes ``train`` and ``valid``, in Megatron's layout; later runs
map them into memory. Every tenth file is for validation.
"""

from __future__ import annotations

import os
import pydoc_data.topics
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sbpjax import comm, env
from sbpjax.train.data import PackedTokens, TokenFile, TokenFileWriter, token_dtype
from sbpjax.train.data.tokenizer import end_of_document, train_tokenizer


def documents() -> list[str]:
    """Return the topics of the language reference and the modules of the standard library, always in one order."""
    topics = pydoc_data.topics.topics
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return [topics[name] for name in sorted(topics)] + [file.read_text(errors="replace") for file in files]


def write(directory: str | os.PathLike, vocabulary: int) -> None:
    """Write the tokenizer and both files of tokens, unless they exist; existing files are complete."""
    folder = Path(directory)
    if (folder / "valid.idx").exists() and (folder / "train.idx").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    texts = documents()
    tokenizer = train_tokenizer(texts, vocabulary)
    end = end_of_document(tokenizer, None, None)
    parts: dict[str, Iterable[str]] = {
        "train": [text for i, text in enumerate(texts) if i % 10 != 9],
        "valid": texts[9::10],
    }
    for name, chosen in parts.items():
        with TokenFileWriter(folder / name, token_dtype(vocabulary), overwrite=True) as writer:
            for text in chosen:
                writer.add(tokenizer.encode(text).ids + [end])
    tokenizer.save(str(folder / "tokenizer.json"))


def tokens(directory: str, part: str, *, vocabulary: int, length: int, samples: int | None = None) -> PackedTokens:
    """Return the samples of a part; rank 0 writes the files if they are missing.

    Args:
        directory: where the files are.
        part: ``"train"`` or ``"valid"``.
        vocabulary: the size of the vocabulary.
        length: tokens of a sample.
        samples: how many a run takes; one epoch by default.
    """
    if env.get_rank() == 0:
        write(directory, vocabulary)
    if env.get_world_size() > 1:
        comm.barrier()
    return PackedTokens(os.path.join(directory, part), length, samples=samples, shuffle=part == "train")


def unigram_entropy(directory: str, vocabulary: int) -> float:
    """Return the validation loss, in nats per token, of a model of token frequencies."""
    train, valid = (TokenFile(os.path.join(directory, part)).tokens for part in ("train", "valid"))
    counts = np.bincount(train, minlength=vocabulary) + 1.0
    return float(-np.log(counts / counts.sum())[valid].mean())
