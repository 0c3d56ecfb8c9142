"""Damaged files of every kind: the same values, the documented error, or at worst other values of the file's own bytes.

Each family is read by a process of its own with a limit of memory and of time for each case.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sbpjax.errors import CheckpointError
from tests.fuzz import worker
from tests.fuzz.data_families import FAMILIES
from tests.fuzz.families import Family

ROOT = Path(__file__).parents[2]
SAMPLE = 60
EXHAUSTIVE = {
    "torch": 30_000, "torch alias": 5_000, "safetensors": 20_000, "plan": 20_000, "graph": 12_000, "checkpoint": 13_000,
    "adapter": 2_000, "token index": 2_000, "snapshot": 2_000, "criteo": 2_000, "model folder": 2_000, "run": 2_000,
    "coco": 2_000, "documents": 2_000, "picture": 2_000, "voc": 2_000, "tokenizer": 2_000,
    "repository": 2_000,
}  # fmt: skip


def read_damaged(name, seed, count, folder, seconds):
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "tests.fuzz.worker",
        name,
        str(seed),
        str(count),
        str(folder),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    at = (folder / "at").read_text().strip() if (folder / "at").exists() else "none"
    assert done.returncode == 0, (
        f"case {at} of {name}, seed {seed}, ended the process ({done.returncode}): {done.stderr[-2000:]}"
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == [] and sum(found["tally"].values()) == count, found
    assert found["tally"].get("refused", 0) > count // 10, "the damage is too small to find anything"
    return found["tally"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_sample_of_damaged_files(name, tmp_path):
    read_damaged(name, "sample", SAMPLE, tmp_path / "x", 300)


class Leaky(Family):
    """A reader that does what no reader may do."""

    def __init__(self, does):
        self.does = does

    def damage(self, folder, r):
        return True

    def read(self, folder):
        return self.does()


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("does", "expected"),
    [
        (lambda: np.frombuffer(b"x" + worker.CANARY, np.uint8), "wrong: foreign bytes"),
        (lambda: np.zeros(3), "wrong: other values"),
        (lambda: fail(KeyError("a")), "wrong: KeyError: 'a'"),
        (lambda: fail(CheckpointError("short")), "wrong: CheckpointError without its four parts"),
        (lambda: [], "same"),
    ],
)
def test_what_a_reader_does_wrong_is_seen(does, expected, tmp_path):
    (tmp_path / "whole").mkdir()
    assert worker.one(Leaky(does), tmp_path / "whole", tmp_path / "case", [], random.Random(0)) == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FAMILIES)
def test_a_hundred_thousand_damaged_files(name, tmp_path):
    print(name, read_damaged(name, "exhaustive", EXHAUSTIVE[name], tmp_path / "x", 6 * 3600))
