"""A dataset of every kind from one folder, and a run over it that may be killed: ``python -m tests.train.data.kinds``.

    python -m tests.train.data.kinds FOLDER WORKERS

A run writes, behind each batch, one file with the loader's state and what all batches held: as a checkpoint does.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np

from sbpjax.train.data import (
    ArrayImages,
    BertPretrainingDataset,
    Blend,
    LabelledTexts,
    PackedTokens,
    SpecialTokens,
    T5SpanCorruptionDataset,
    TokenFileWriter,
)
from sbpjax.train.data.labelled_texts import Columns
from sbpjax.utils.data import DataLoader

SAMPLES, BATCH = 96, 8


class Letters:
    """A tokenizer of letters."""

    def encode_batch_fast(self, texts, add_special_tokens):
        class Encoded:
            def __init__(self, ids):
                self.ids = ids

        return [Encoded(list(text.encode())) for text in texts]


def write(folder: Path) -> None:
    """Write the files that the datasets read."""
    rng = np.random.default_rng(0)
    with TokenFileWriter(folder / "tokens", np.uint16) as writer:
        for _ in range(30):
            writer.add(rng.integers(10, 200, rng.integers(2, 60)))
    rows = ["".join(chr(rng.integers(97, 123)) for _ in range(n)) for n in rng.integers(1, 20, 50)]
    (folder / "rows.tsv").write_text("".join(f"{row}\t{i % 2}\n" for i, row in enumerate(rows)))


def long(folder: Path, samples: int = 40 * SAMPLES) -> BertPretrainingDataset:
    """Return a dataset for a run that is killed many times."""
    return BertPretrainingDataset(folder / "tokens", 16, SpecialTokens(0, 1, 2, 3), 200, samples=samples, seed=1)


KINDS = {
    "packed": lambda folder: PackedTokens(folder / "tokens", 8, samples=SAMPLES),
    "masked": lambda folder: long(folder, SAMPLES),
    "spans": lambda folder: T5SpanCorruptionDataset(folder / "tokens", 16, end=1, sentinel=255, samples=SAMPLES),
    "texts": lambda folder: LabelledTexts(
        folder / "rows.tsv", Letters(), Columns(0, 1), 16, special=SpecialTokens(0, 1, 2), samples=SAMPLES
    ),
    "images": lambda folder: ArrayImages(
        np.arange(20 * 16, dtype=np.int64).astype(np.uint8).reshape(20, 4, 4),
        np.arange(20),
        augment=True,
        margin=1,
        samples=SAMPLES,
    ),
    "blend": lambda folder: Blend([PackedTokens(folder / "tokens", 8, seed=seed) for seed in (1, 2)], [2, 1], SAMPLES),
}


def values(batch) -> list:
    """Return what a batch holds, as lists."""
    parts = sorted(batch.items()) if isinstance(batch, dict) else enumerate(batch)
    return [part.numpy().tolist() for _, part in parts]


def digest(batch) -> str:
    """Return a short name of what a batch holds."""
    return hashlib.sha256(json.dumps(values(batch)).encode()).hexdigest()[:16]


def main(folder: str, workers: str) -> None:
    """Go through the dataset, or on from where the file says."""
    path = Path(folder) / "run.json"
    loader = DataLoader(long(Path(folder)), BATCH // 4, num_workers=int(workers))
    taken: list[str] = []
    if path.exists():
        kept = json.loads(path.read_text())
        taken = kept["taken"]
        loader.load_state_dict(kept["state"])
    for batch in loader:
        taken.append(digest(batch))
        fresh = path.with_suffix(".part")
        fresh.write_text(json.dumps({"taken": taken, "state": loader.state_dict()}))
        os.replace(fresh, path)
        if len(taken) % 4 == 0:
            print(len(taken), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
