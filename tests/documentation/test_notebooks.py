"""The notebooks come from their pages and scripts, run, and show what is committed."""

import importlib
import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
NEEDS = {"hugging_face": ("torch", "transformers")}


@pytest.fixture(scope="module")
def script():
    names = {"__name__": "write", "__file__": str(FOLDER / "write.py")}
    exec((FOLDER / "write.py").read_text(), names)
    return names


def committed(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text())


def kinds(outputs):
    """Return what is shown below a cell: the richest form of each output."""
    forms = ("text/html", "image/png", "text/plain")
    return [next((form for form in forms if form in out.get("data", {})), "stream") for out in outputs]


def test_there_is_one_for_each_source(script):
    assert set(script["NAMES"]) == set(NAMES) and len(NAMES) == 6


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_those_of_the_source(name, script):
    found, source = committed(name), script["notebook"](name)
    for cell in (*found["cells"], *source["cells"]):
        cell.pop("outputs", None)
    assert found == source, f"write it anew: python docs/notebooks/write.py {name}"


def links_of(notebook):
    text = "\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    return re.findall(r"\]\(([^)]*)\)", text)


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_published_project_are_absolute_and_the_badge_opens_the_notebook(name, script):
    address = "https://github.com/example/fork"
    made = script["notebook"](name, address)
    picture, badge, *links = links_of(made)
    assert picture == script["BADGE"] and links
    assert badge == f"https://colab.research.google.com/github/example/fork/blob/main/docs/notebooks/{name}.ipynb"
    for link in links:
        path = re.sub(r"#.*", "", link.removeprefix(f"{address}/blob/main/"))
        assert (FOLDER.parents[1] / path).is_file(), link
    assert f"git+{address}" in made["cells"][1]["source"]


@pytest.mark.parametrize("name", NAMES)
def test_links_without_an_address_are_names_of_files(name, script):
    made = script["notebook"](name, None)
    assert links_of(made) == [] and "git+" not in made["cells"][0]["source"]
    files = re.findall(r"\(`(docs/[^`]*|examples/[^`]*)`\)", "\n".join(cell["source"] for cell in made["cells"]))
    assert files and all((FOLDER.parents[1] / file).is_file() for file in files)


def test_the_address_of_the_project_stands_in_one_place(script):
    assert script["REPOSITORY"] == script["PROJECT"].get("urls", {}).get("Repository")
    assert (script["REPOSITORY"] or "https://github.com/").startswith("https://github.com/")
    for path in (*FOLDER.parents[0].rglob("*.md"), *FOLDER.glob("*.ipynb"), *FOLDER.parents[1].glob("*.*")):
        if path.suffix in (".md", ".ipynb", ".cff", ".toml"):
            text = path.read_text()
            assert "github.com/OWNER" not in text, path
            assert script["REPOSITORY"] or "colab.research.google.com" not in text, path


def test_pictures_and_tables_are_shown():
    shown = [kinds(cell["outputs"]) for name in NAMES for cell in committed(name)["cells"] if "outputs" in cell]
    pictures = [
        output
        for name in NAMES
        for cell in committed(name)["cells"]
        for output in cell.get("outputs", ())
        if "<svg" in "".join(output.get("data", {}).get("text/html", "")) or "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 10 and sum("text/html" in found for found in shown) >= 20
    assert all((FOLDER / f"{name}.ipynb").stat().st_size < 150_000 for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_cells_run_and_show_what_is_committed(name, tmp_path, monkeypatch):
    ipython = pytest.importorskip("IPython", reason="needs the extra `test`")
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SBPJAX_COMPILE_NOTE", "off")
    plots = pytest.importorskip("matplotlib", reason="needs the extra `demo`")
    plots.use("agg")
    shell = ipython.core.interactiveshell.InteractiveShell()
    shell.display_formatter.active_types = ["text/plain", "text/html"]
    for method in ("write_output_prompt", "write_format_data", "finish_displayhook"):  # the value itself is compared
        monkeypatch.setattr(shell.displayhook, method, lambda *_: None, raising=True)
    for cell in committed(name)["cells"]:
        if cell["cell_type"] == "code":
            with ipython.utils.capture.capture_output() as printed:
                result = shell.run_cell(cell["source"])
            assert result.success, f"{cell['source']}\n{result.error_in_exec or result.error_before_exec!r}"
            assert bool(printed.stdout) == any("name" in out for out in cell["outputs"]), cell["source"]
            expected = [out["data"] for out in cell["outputs"] if out["output_type"] == "execute_result"]
            found = [] if result.result is None else [shell.display_formatter.format(result.result)[0]]
            assert [set(data) for data in found] == [set(data) for data in expected], cell["source"]
            if found and "text/html" not in found[0]:
                assert _words(found[0]["text/plain"]) == _words(expected[0]["text/plain"]), cell["source"]
    importlib.import_module("matplotlib.pyplot").close("all")


def _words(text):
    """Return a text without its numbers, which differ in the last digits."""
    return re.sub(r"[\d.e+-]+", "0", text)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_runs_it(name, script):
    pytest.importorskip("nbformat", reason="needs the extra `docs`").validate(committed(name))
    pytest.importorskip("nbclient", reason="needs the extra `docs`")
    found = script["run"](script["notebook"](name))["cells"]
    for cell, before in zip(found, committed(name)["cells"], strict=True):
        assert kinds(cell.get("outputs", ())) == kinds(before.get("outputs", ())), cell["source"]
