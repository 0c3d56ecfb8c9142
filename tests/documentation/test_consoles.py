"""Consoles on pages: lines with ``$`` are run by a shell, beside the page's programs, and print what follows.

A program is a block of Python that begins with the name of its file. Only the output is compared, not the error output;
``...`` in it stands for anything.
"""

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if "```console" in page.read_text())
NEEDS = {"llama": "transformers"}
SAME = doctest.OutputChecker().check_output


def steps(page):
    """Return ``(command, what it prints)`` of a page, in order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def test_there_are_consoles():
    assert {page.stem for page in PAGES} >= {"processes", "llama"}
    assert all(steps(page) for page in PAGES)


LONG = {"llama"}  # half a minute


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.exhaustive] if p.stem in LONG else []) for p in PAGES],
)
def test_a_console_prints_what_the_page_says(page, tmp_path):
    package = NEEDS.get(page.stem)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    programs = re.findall(r"```python\n# ([\w.]+\.py)\n(.*?)```", page.read_text(), flags=re.DOTALL)
    for name, code in programs:
        (tmp_path / name).write_text(code)
    shell = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "NPROC": "32"}
    shell["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{shell['PATH']}"
    shell.pop("SBPJAX_CPU_DEVICES", None)
    for command, wanted in steps(page):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=shell, capture_output=True, text=True, timeout=600
        )
        same = SAME(wanted, done.stdout, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert same, f"$ {command}\n{done.stdout}\n{done.stderr[-3000:]}"
