"""The README is true: its session prints what it says, its quotes stand in the source, its paths and commands exist."""

import doctest
import re
from pathlib import Path

import pytest

import sbpjax as flow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_session():
    source = "\n".join(block for block in BLOCKS if ">>>" in block)
    session = doctest.DocTestParser().get_doctest(source, {}, "README", "README.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    runner.run(session, out=report.append)
    assert runner.tries > 25
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("block", [b for b in BLOCKS if ">>>" not in b])
def test_quoted_code_stands_in_the_source(block):
    assert any(block in path.read_text() for path in (ROOT / "sbpjax").rglob("*.py"))


def test_paths_exist():
    paths = re.findall(r"`((?:sbpjax|examples|docs|tests)/[^`]*)`", README)
    paths += re.findall(r"\]\((docs/[^)]*)\)", README)
    assert len(paths) > 10
    for path in paths:
        assert list(ROOT.glob(path.rstrip("/"))), path


def test_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"^make (\w+)", README, flags=re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    commands = [ROOT / "examples" / "gpt" / "train.py", ROOT / "sbpjax" / "compat" / "run.py"]
    sources = "".join(path.read_text() for path in commands)
    for option in re.findall(r"--[a-z][a-z-]*", README):
        assert f'"{option}"' in sources, option


def test_names_exist():
    for name in set(re.findall(r"`flow\.(\w+)", README)) | set(re.findall(r"flow\.(\w+)\(", README)):
        assert hasattr(flow, name), name


def test_every_page_is_linked():
    linked = set(re.findall(r"\]\(docs/([^)#]*)\)", README))
    assert linked == {path.name for path in (ROOT / "docs").glob("*.md")}
