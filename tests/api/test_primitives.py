"""The page of primitives agrees with the table, and names every primitive of this JAX."""

import pathlib
import subprocess
import sys

import jax

import sbpjax._core.planner  # noqa: F401  # registers control flow
from sbpjax._core.programs.rules import only_rules_of, table
from tests.api import primitives as report

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "primitives.md"


def test_page_is_up_to_date():
    text = _PAGE.read_text()
    words, made = set(text.split()), set(report.primitives())  # once: it looks at every object of the process
    for names in report.families().values():
        assert words >= made & set(names)
    if f"JAX {jax.__version__}." in text:
        # In a process of its own: what other tests import brings more primitives.
        command = [sys.executable, "-m", "tests.api.primitives"]
        page = subprocess.run(command, capture_output=True, text=True, check=True, cwd=_PAGE.parents[2]).stdout
        assert text == page, "run `python -m tests.api.primitives > docs/reference/primitives.md`"
        assert "not looked at yet" not in text


def test_only_empties_the_table_for_a_while():
    with only_rules_of("add", "dot_general"):
        assert table.names() == ["add", "dot_general"]
    assert len(table.names()) > 150 and table.has_rule("gather")
