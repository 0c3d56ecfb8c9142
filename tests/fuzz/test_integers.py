"""Extreme integers in any public call: an error or a result; no process ends, and none is kept busy."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import integers

ROOT = Path(__file__).parents[2]


def run_cases(first, count, folder, seconds):
    report = folder / "report.json"
    command = [sys.executable, "-m", "tests.fuzz.integers", str(first), str(count), str(report)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(report.read_text())
    assert found["ended"] == []
    tally = found["tally"]
    assert sum(tally.values()) == count
    assert tally["refused"] > count // 4 and tally["returned"] > count // 20, "the numbers are not extreme, or too much"


def test_a_sample_of_calls_ends_no_process(tmp_path):
    run_cases(0, 200, tmp_path, 900)


@pytest.mark.exhaustive
def test_many_calls_end_no_process(tmp_path):
    run_cases(1000, 100_000, tmp_path, 8 * 3600)


def test_a_case_is_the_same_each_time_it_is_drawn():
    assert [str(integers.Case(n)) for n in range(20)] == [str(integers.Case(n)) for n in range(20)]


def test_numbers_are_found_and_replaced_in_nested_arguments():
    tree = ((1, "a", [2, True]), {"k": 3})
    assert integers.numbers_in(tree) == [(0, 0), (0, 2, 0), (1, "k")]
    assert integers.replaced(tree, (0, 2, 0), 9) == ((1, "a", [9, True]), {"k": 3})
