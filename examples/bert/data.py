"""Data of the BERT example: sources of packages of Python's library, in passages of about 400 characters.

Every eighth passage is held out: neither the tokenizer nor the pre-training sees it.
"""

from __future__ import annotations

import json
import os
import sysconfig
from pathlib import Path

import numpy as np

from sbpjax.train.data import TokenFileWriter, token_dtype, train_tokenizer

PACKAGES = ("asyncio", "email", "importlib", "logging", "multiprocessing", "unittest", "urllib", "xml")
PASSAGE_CHARACTERS, HELD_OUT = 400, 8


def files_of(package: str) -> list[Path]:
    """Return the sources of a package, without tests."""
    found = []
    root = Path(sysconfig.get_path("stdlib")) / package
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("test", "tests", "__pycache__"))
        found += [Path(folder) / name for name in sorted(files) if name.endswith(".py")]
    return found


def passages_of(package: str) -> list[str]:
    """Return the passages of a package's sources, in their order: whole lines, without indentation."""
    found = []
    for file in files_of(package):
        passage = ""
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            passage += line.strip() + "\n" if line.strip() else ""
            if len(passage) >= PASSAGE_CHARACTERS:
                found.append(passage)
                passage = ""
    return found


def write(folder: Path, vocabulary: int, packages: tuple[str, ...] = PACKAGES) -> None:
    """Write the files of the recipe.

    Args:
        folder: gets ``tokenizer.json``, ``pages.bin`` and ``.idx`` (documents of passages that follow each other),
            ``train.jsonl`` and ``held_out.jsonl`` (a passage and its package per line).
        vocabulary: tokens of the tokenizer.
        packages: the classes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    documents, rows = [], {"train": [], "held_out": []}
    for package in packages:
        passages = passages_of(package)
        for i, passage in enumerate(passages):
            part = "held_out" if i % HELD_OUT == HELD_OUT - 1 else "train"
            rows[part].append({"text": passage, "package": package})
        whole = [passages[i : i + HELD_OUT - 1] for i in range(0, len(passages), HELD_OUT)]
        documents += ["".join(part) for part in whole]
    for part, lines in rows.items():
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tokenizer = train_tokenizer(documents, vocabulary, model="wordpiece")
    tokenizer.save(str(folder / "tokenizer.json"))
    with TokenFileWriter(folder / "pages", token_dtype(vocabulary), overwrite=True) as writer:
        for each in tokenizer.encode_batch_fast(documents, add_special_tokens=False):
            writer.add(np.array(each.ids))


def majority(folder: Path) -> float:
    """Return the share of the largest class in the held-out part: the accuracy of always predicting it."""
    packages = [json.loads(line)["package"] for line in (folder / "held_out.jsonl").read_text().splitlines()]
    return max(map(packages.count, set(packages))) / len(packages)
