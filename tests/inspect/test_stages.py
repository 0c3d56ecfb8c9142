"""Every feature has what its stage needs: tests that run, a benchmark, a page; the page of stages is the table's."""

import ast
import functools
from pathlib import Path

import pytest

import sbpjax as flow
from sbpjax.inspect.stages import ALPHA, FEATURES, PLANNED, PRE_ALPHA, STAGES
from tests.api import stages as written

ROOT = Path(__file__).parents[2]
BY_NAME = pytest.mark.parametrize("feature", FEATURES, ids=lambda f: f"{f.area}: {f.name}".replace("::", ":"))


@functools.cache
def always_run(file):
    """Return the tests of a file that `make test` runs, a case of them at least."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / "tests" / file).read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = {ast.unparse(mark).partition("(")[0] for mark in node.decorator_list}
            if not marks & {"pytest.mark.exhaustive", "pytest.mark.skip", "pytest.mark.skipif"}:
                found.add(node.name)
    return found


def test_tests_that_are_not_run_are_told_from_others():
    guides = always_run("documentation/test_guides.py")
    assert "test_code_runs" in guides
    assert "test_a_llama_of_hugging_face_trains_unchanged_and_laid_out_by_the_planner" not in guides


@BY_NAME
def test_what_a_feature_names_is_there(feature):
    assert feature.stage in STAGES
    for test in feature.tests:
        file, _, name = test.partition("::")
        assert (ROOT / "tests" / file).is_file() and name in always_run(file), test
    assert not feature.benchmark or (ROOT / "benchmarks" / feature.benchmark).is_file()
    assert not feature.page or (ROOT / "docs" / feature.page).is_file()


@BY_NAME
def test_a_stage_has_what_it_needs(feature):
    if feature.stage == PLANNED:
        assert not (feature.tests or feature.benchmark or feature.page)
    if feature.stage == ALPHA:
        assert feature.tests and feature.page
    assert feature.stage in (PLANNED, PRE_ALPHA, ALPHA)  # more takes people outside who review and try it


def test_the_page_is_the_table_s():
    assert written.PAGE.read_text() == written.page(), "make api"
    names = [(feature.area, feature.name) for feature in FEATURES]
    assert len(set(names)) == len(names) > 50


def test_the_table_prints():
    shown = str(flow.stages())
    assert all(feature.name in shown for feature in FEATURES)
    found = flow.stages("ZeRO")
    assert [f.name for f in found.features if f.area == "nn.Graph advanced"] == ["ZeRO"]
    assert "<table>" in found._repr_html_() and str(flow.stages("no such thing")) == "no such feature"
    assert {f.stage for f in flow.stages(PRE_ALPHA).features} == {PRE_ALPHA}
