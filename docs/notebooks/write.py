"""Write the notebooks beside this file from the tutorials: text as it is, each block of a session as a cell.

``python docs/notebooks/write.py`` writes them. Outputs are those on the page, which the tests compare with a run.
"""

import doctest
import json
import re
from pathlib import Path

HERE = Path(__file__).parent
TUTORIALS = HERE.parent / "tutorials"
PAGES = ("five_minutes",)
INSTALL = """# No release is on a package index yet: upload the wheel of `make dist`, or give the address of your fork.
# %pip install -q sbpjax-0.1.0-py3-none-any.whl
# %pip install -q git+https://github.com/YOU/sbpjax"""


def notebook(page: str) -> dict:
    """Return a tutorial as a notebook of nbformat 4.5."""
    text = (TUTORIALS / f"{page}.md").read_text()
    cells = [_code(INSTALL, [])]
    for kind, part in _parts(text):
        if kind == "text":
            cells.append({"cell_type": "markdown", "metadata": {}, "source": _linked(part)})
        else:
            examples = doctest.DocTestParser().get_examples(part)
            for at, example in enumerate(examples):
                last = at == len(examples) - 1
                if at == 0 or examples[at - 1].want:  # an output ends a cell
                    source, outputs = "", []
                source += example.source
                outputs += [example.want] if example.want else []
                if example.want or last:
                    cells.append(_code(source.strip(), outputs))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def _parts(text: str):
    for at, part in enumerate(re.split(r"```python\n(.*?)```\n?", text, flags=re.DOTALL)):
        if part.strip():
            yield ("code" if at % 2 else "text"), part.strip()


def _linked(text: str) -> str:
    """Return text whose links lead from this folder."""
    return re.sub(r"\]\((?![a-z]+:|#)([^)]*)\)", lambda m: f"]({_from_here(m[1])})", text)


def _from_here(target: str) -> str:
    return target if target.startswith("../") else f"../tutorials/{target}"


def _code(source: str, outputs: list[str]) -> dict:
    source = re.sub(r"  # doctest: \+\w+", "", source)
    shown = [{"name": "stdout", "output_type": "stream", "text": text} for text in outputs]
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": shown, "source": source}


def written(page: str) -> str:
    """Return the text of a notebook's file."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for page in PAGES:
        (HERE / f"{page}.ipynb").write_text(written(page))
