"""Write the notebooks beside this file, with the outputs of a run.

``python docs/notebooks/write.py [NAME …]`` writes all of them, or those named. It runs those whose code has changed,
which needs the extras ``docs`` and ``demo``; to run another one, remove its file first.
A notebook comes from one of two sources:

* a tutorial: text as it is, each example of a session as a cell; ``print(report)`` becomes ``report``, which a notebook
  shows as a table, and a comment ``<!-- notebook: code -->`` is a cell that only the notebook has;
* a script ``NAME.py`` beside this file in the percent format: ``# %%`` begins a cell, ``# %% [markdown]`` a text.

A notebook is read in Colab too, where relative links are dead. With ``Repository`` in ``[project.urls]`` of
`pyproject.toml`, links are absolute and a badge opens the notebook in Colab. Without it no address is published, and a
link to a page is the name of its file, as in `docs/conf.py`.
"""

import doctest
import json
import os
import re
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent
PROJECT = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
REPOSITORY = PROJECT.get("urls", {}).get("Repository")
TUTORIALS = ("five_minutes",)
SCRIPTS = tuple(sorted(path.stem for path in HERE.glob("*.py") if path != Path(__file__)))
NAMES = (*TUTORIALS, *SCRIPTS)
INSTALL = """\
import glob, importlib.util

if importlib.util.find_spec("sbpjax") is None:  # in Colab: upload a wheel of `make dist` to Files%s
    source = %s
    %%pip install -q {source}"""
BADGE = "https://colab.research.google.com/assets/colab-badge.svg"


def badge(name: str, repository: str) -> str:
    """Return the link that opens a notebook in Colab."""
    path = repository.removeprefix("https://github.com/")
    return f"[![Open in Colab]({BADGE})](https://colab.research.google.com/github/{path}/blob/main/docs/notebooks/{name}.ipynb)"


def install(repository: str | None) -> str:
    """Return the cell that installs sbpjax where it is missing."""
    if repository is None:
        return INSTALL % ("", 'glob.glob("sbpjax-*.whl")[0]')
    return INSTALL % (", or install the repository", f'(glob.glob("sbpjax-*.whl") or ["git+{repository}"])[0]')


def notebook(name: str, repository: str | None = REPOSITORY) -> dict:
    """Return a notebook of nbformat 4.5 without outputs.

    Args:
        name: of the notebook.
        repository: its address on GitHub; None if it is not published.
    """
    parts = _of_script(name) if name in SCRIPTS else _of_tutorial(name)
    cells = [] if repository is None else [_cell("markdown", badge(name, repository))]
    cells.append(_cell("code", install(repository)))
    for kind, text, folder in parts:
        if text:
            cells.append(_cell(kind, _with_links(text, folder, repository) if kind == "markdown" else text))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, text: str) -> dict:
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, **code, "source": text}


def _of_script(name: str):
    for part in re.split(r"^# %%", (HERE / f"{name}.py").read_text(), flags=re.MULTILINE)[1:]:
        head, _, text = part.partition("\n")
        if head.strip() == "[markdown]":
            yield "markdown", re.sub(r"^# ?", "", text.strip(), flags=re.MULTILINE), HERE
        else:
            yield "code", text.strip(), HERE


def _of_tutorial(name: str):
    page = DOCS / "tutorials" / f"{name}.md"
    pattern = r"```python\n(.*?)```\n?|<!-- notebook:\s(.*?)\s-->\n?"
    end, text = 0, page.read_text()
    for match in re.finditer(pattern, text, flags=re.DOTALL):
        yield "markdown", text[end : match.start()].strip(), page.parent
        for code in (match[2],) if match[2] else _of_session(match[1]):
            yield "code", code, page.parent
        end = match.end()
    yield "markdown", text[end:].strip(), page.parent


def _of_session(session: str):
    """Yield the code of a session's cells: an example with an output ends a cell."""
    source = ""
    for example in doctest.DocTestParser().get_examples(session):
        text = re.sub(r"  # doctest: \+\w+", "", example.source.strip())
        source += re.sub(r"^print\(([^,]*)\)$", r"\1", text) + ("\n\n\n" if "\n" in text else "\n")
        if example.want:
            yield source.strip()
            source = ""
    yield source.strip()


def _with_links(text: str, folder: Path, repository: str | None) -> str:
    pattern = r"(!?)\[(?P<words>[^\]]*)\]\((?![a-z]+:|#)(?P<target>[^)]*)\)"
    return re.sub(pattern, lambda match: _link(match, folder, repository), text)


def _link(match: re.Match, folder: Path, repository: str | None) -> str:
    path, *part = match["target"].split("#")
    path = (folder / path).resolve().relative_to(DOCS.parent.resolve()).as_posix()
    if repository is None:
        return f"{match['words']} (`{path}`)"
    address = "#".join([f"{repository}/{'raw' if match[1] else 'blob'}/main/{path}", *part])
    return f"{match[1]}[{match['words']}]({address})"


def run(cells: dict) -> dict:
    """Return a notebook with the outputs of a run in an empty folder."""
    import nbclient
    import nbformat

    os.environ["SBPJAX_COMPILE_NOTE"] = "off"  # progress, whose seconds differ from run to run
    found = nbformat.from_dict(cells)
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(found, timeout=300, resources={"metadata": {"path": folder}}).execute()
    for cell in found.cells:
        cell["metadata"] = {}  # times of the run
        if cell.cell_type == "code":
            cell["outputs"] = _with_joined_lines(cell["outputs"])
            cell["execution_count"] = None
            for output in cell["outputs"]:
                output.pop("execution_count", None)
                if output["output_type"] == "execute_result":
                    output["execution_count"] = None
    found["metadata"] = cells["metadata"]
    return found


def _with_joined_lines(outputs: list) -> list:
    """Return outputs without those of stderr, and with what one cell printed in one piece."""
    found: list = []
    for output in outputs:
        if found and output.get("name") == found[-1].get("name") == "stdout":
            found[-1]["text"] += output["text"]
        elif output.get("name") != "stderr":
            found.append(output)
    return found


def written(name: str) -> dict:
    """Return a notebook with outputs: those of its file where the code is the same, else those of a run."""
    found, file = notebook(name), HERE / f"{name}.ipynb"
    before = json.loads(file.read_text()) if file.exists() else {"cells": []}
    outputs = {cell["source"]: cell["outputs"] for cell in before["cells"] if cell["cell_type"] == "code"}
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    if [cell["source"] for cell in code] != list(outputs):
        return run(found)
    for cell in code:
        cell["outputs"] = outputs[cell["source"]]
    return found


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        text = json.dumps(written(name), indent=1, ensure_ascii=False, sort_keys=True)
        (HERE / f"{name}.ipynb").write_text(text + "\n")
        print(f"{name}.ipynb: {len(text) / 1000:.0f} kB")
