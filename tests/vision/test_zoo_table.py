"""The pages of families say what the models are, and their code runs."""

import re

import pytest

import sbpjax as flow
from tests.vision.zoo_table import FAMILIES, PAGES, index, members, page, row

EACH = [name if name == "resnet" else pytest.param(name, marks=pytest.mark.exhaustive) for name in FAMILIES]


def test_every_model_is_on_one_page():
    listed = [name for family in FAMILIES.values() for name in members(family)]
    assert sorted(listed) == flow.vision.list_models()
    assert (PAGES / "index.md").read_text() == index()
    assert {path.stem for path in PAGES.glob("*.md")} == {*FAMILIES, "index"}
    for name, family in FAMILIES.items():
        assert re.findall(r"^\| `(\w+)`", (PAGES / f"{name}.md").read_text(), re.MULTILINE) == members(family)


@pytest.mark.parametrize("name", ["resnet", "rexnet", "vit", "swin"])
def test_a_row_of_a_page(name):
    assert row(members(FAMILIES[name])[-1]) in (PAGES / f"{name}.md").read_text().splitlines()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FAMILIES)
def test_pages(name):
    assert (PAGES / f"{name}.md").read_text() == page(FAMILIES[name])


@pytest.mark.parametrize("name", EACH)
def test_code_of_a_page_runs(name):
    (code,) = re.findall(r"```python\n(.*?)```", (PAGES / f"{name}.md").read_text(), re.DOTALL)
    exec(compile(code, f"{name}.md", "exec"), {})
