"""Every feature has what its stage needs: tests that run, a benchmark, a page; the page of stages is the table's."""

import ast
import functools
from pathlib import Path

import pytest

from tests.api.stages import ALPHA, FEATURES, PAGE, PLANNED, PRE_ALPHA, STAGES, page

ROOT = Path(__file__).parents[2]
BY_NAME = pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f"{f.area}: {f.name}".replace("::", ":"))


# Files that another command runs than `make test`; the note of a feature that has no other test names it.
BY_OTHER_COMMANDS = {"cpp/test_cpp.py": "make cpp"}


@functools.cache
def named_in(file):
    """Return the tests of a file, and those of them that `make test` runs, a case of them at least."""
    there, run = set(), set()
    tree = ast.parse((ROOT / "tests" / file).read_text())
    marks = [ast.unparse(node.value) for node in tree.body if isinstance(node, ast.Assign)
             and ast.unparse(node.targets[0]) == "pytestmark"]  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            there.add(node.name)
            names = {ast.unparse(mark).partition("(")[0] for mark in node.decorator_list}
            left_out = names & {"pytest.mark.exhaustive", "pytest.mark.skip", "pytest.mark.skipif"}
            needs = any(name.startswith("NEEDS_") for name in names) or "importorskip" in ast.unparse(node)
            if not left_out and not needs and not any("exhaustive" in mark for mark in marks):
                run.add(node.name)
    return there, run


def test_tests_that_are_not_run_are_told_from_others():
    there, run = named_in("documentation/test_guides.py")
    assert "test_code_runs" in run
    assert "test_a_llama_of_hugging_face_trains_unchanged_and_laid_out_by_the_planner" in there - run
    assert "test_iree_takes_the_program_as_it_is" in named_in("engines/test_program.py")[0]
    assert "test_iree_takes_the_program_as_it_is" not in named_in("engines/test_program.py")[1]
    assert not named_in("cpp/test_cpp.py")[1]


@BY_NAME
def test_what_a_feature_names_is_there(feature):
    assert feature.stage in STAGES
    for test in feature.tests:
        file, _, name = test.partition("::")
        assert (ROOT / "tests" / file).is_file() and name in named_in(file)[0], test
    assert not feature.benchmark or (ROOT / "benchmarks" / feature.benchmark).is_file()
    assert not feature.page or (ROOT / "docs" / feature.page).is_file()


@BY_NAME
def test_a_stage_has_what_it_needs(feature):
    if feature.stage == PLANNED:
        assert not (feature.tests or feature.benchmark or feature.page)
    else:
        by_test = [test.partition("::") for test in feature.tests]
        executed = any(name in named_in(file)[1] for file, _, name in by_test)
        assert executed or any(BY_OTHER_COMMANDS.get(file, "?") in feature.note for file, _, _ in by_test)
        assert feature.page
    assert feature.benchmark or feature.unmeasured.startswith("no figure: ")
    assert feature.stage in (PLANNED, PRE_ALPHA, ALPHA)  # more takes people outside who review and try it


def test_the_page_is_the_table_s():
    assert PAGE.read_text() == page(), "make api"
    names = [(feature.area, feature.name) for feature in FEATURES]
    assert len(set(names)) == len(names) > 50
