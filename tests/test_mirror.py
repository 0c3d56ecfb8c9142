"""Tests mirror their source: ``sbpjax/_core/planner/exact.py`` is tested by ``tests/planner/test_exact.py``.

What has no mirror stands in `tests/support/mirror.py`, with the tests that hold it and the reason.
"""

from pathlib import Path

from tests.support.mirror import TESTED_BY
from tests.support.packages import package_of

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "sbpjax"


def without_mirror():
    for path in sorted(SOURCE.rglob("*.py")):
        file = Path(path.relative_to(SOURCE).as_posix().removeprefix("_core/"))
        is_face = package_of(path.relative_to(SOURCE.parent).as_posix()) == "faces"
        if path.name == "__init__.py" or is_face or file.parts[0] == "utils":
            continue  # names alone: tests/api asks for every one
        if not (TESTS / file.with_name(f"test_{file.name}")).exists():
            yield file.as_posix()


def row_of(file):
    return max((row for row in TESTED_BY if file == row or (row.endswith("/") and file.startswith(row))), key=len)


def test_every_file_has_its_tests():
    lost = [file for file in without_mirror() if not any(file == row or file.startswith(row) for row in TESTED_BY)]
    assert not lost, f"no tests/<package>/test_<file>.py, and no row in tests/support/mirror.py: {lost}"


def test_every_row_is_needed_and_names_tests():
    used = {row_of(file) for file in without_mirror()}
    assert set(TESTED_BY) == used, f"not needed: {sorted(set(TESTED_BY) - used)}"
    named = {test for tests, _ in TESTED_BY.values() for test in tests.split()}
    assert not [test for test in named if not (TESTS / test).exists()]
