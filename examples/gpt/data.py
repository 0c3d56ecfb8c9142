"""Data of the GPT example: Python's language reference as bytes, in batches that depend on the step alone.

A batch is drawn by a counter-based generator from (seed, step), so a resumed run sees the batches that the
interrupted one would have seen, and every layout sees the same ones.
"""

from __future__ import annotations

import pydoc_data.topics
from dataclasses import dataclass
from pathlib import Path

import numpy as np

VOCAB_SIZE = 256  # bytes
BLOCKS = 50  # of the text, every tenth for validation: topics differ too much to cut off the end


@dataclass(frozen=True)
class Corpus:
    """A text, split into training and validation part.

    Attributes:
        train: `(N,)` uint8, nine tenths of the text.
        valid: `(M,)` uint8, every tenth block of it.
        seed: of the training batches.
    """

    train: np.ndarray
    valid: np.ndarray
    seed: int = 0

    def batch(self, step: int, batch_size: int, context: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the inputs and targets of one training step, both `(batch_size, context)` int64."""
        random = np.random.Generator(np.random.Philox(key=[self.seed, step]))
        starts = random.integers(0, len(self.train) - context, size=batch_size)
        return _windows(self.train, starts, context)

    def validation_batches(self, count: int, batch_size: int, context: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return `count` fixed batches spread evenly over the validation part."""
        starts = np.linspace(0, len(self.valid) - context - 1, count * batch_size).astype(np.int64)
        return [_windows(self.valid, part, context) for part in np.split(starts, count)]

    def unigram_entropy(self) -> float:
        """Return the validation loss, in nats per byte, of a model of byte frequencies."""
        counts = np.bincount(self.train, minlength=VOCAB_SIZE) + 1.0
        return float(-np.log(counts / counts.sum())[self.valid].mean())


def _windows(text: np.ndarray, starts: np.ndarray, context: int) -> tuple[np.ndarray, np.ndarray]:
    windows = text[starts[:, None] + np.arange(context + 1)].astype(np.int64)  # (B, T + 1)
    return windows[:, :-1], windows[:, 1:]


def load_corpus(path: str | None = None, seed: int = 0) -> Corpus:
    """Load a text file, or, without `path`, the language reference of this Python (about 460 kB of English)."""
    if path is None:
        topics = pydoc_data.topics.topics
        text = "\n\n".join(topics[name] for name in sorted(topics)).encode()
    else:
        text = Path(path).read_bytes()
    blocks = np.array_split(np.frombuffer(text, np.uint8), BLOCKS)
    valid = blocks[9::10]
    train = [block for i, block in enumerate(blocks) if i % 10 != 9]
    return Corpus(np.concatenate(train), np.concatenate(valid), seed)


def encode(text: str) -> np.ndarray:
    """Return the text's bytes, `(T,)` int64."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int64)


def decode(tokens: np.ndarray) -> str:
    """Return the text of bytes; invalid UTF-8 becomes a replacement character."""
    return bytes(np.asarray(tokens, np.uint8)).decode(errors="replace")
