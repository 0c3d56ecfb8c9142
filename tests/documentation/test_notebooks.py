"""The notebooks are the tutorials, and they run."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"


@pytest.fixture(scope="module")
def script():
    names = {"__name__": "write", "__file__": str(FOLDER / "write.py")}
    exec((FOLDER / "write.py").read_text(), names)
    return names


def test_they_are_what_the_pages_say(script):
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(script["PAGES"])
    for page in script["PAGES"]:
        found = (FOLDER / f"{page}.ipynb").read_text()
        assert found == script["written"](page), "write it anew: python docs/notebooks/write.py"


def test_they_are_valid(script):
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `docs`")
    for page in script["PAGES"]:
        nbformat.validate(json.loads(script["written"](page)))


@pytest.mark.exhaustive
def test_they_run(script, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `docs`")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `docs`")
    for page in script["PAGES"]:
        run = nbformat.reads(script["written"](page), as_version=4)
        nbclient.NotebookClient(run, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
        for cell, before in zip(run.cells, script["notebook"](page)["cells"], strict=True):
            assert bool(cell.get("outputs")) == bool(before.get("outputs")), cell.source
