"""The README is true and stays a page: its program trains, its paths, commands and names exist."""

import re
from pathlib import Path

import pytest

import sbpjax as flow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
RULES = (ROOT / "docs" / "how_to" / "adding_a_rule.md").read_text()


def test_it_is_a_page():
    prose = re.sub(r"\]\([^)]*\)", "]", re.sub(r"```.*?```", "", README, flags=re.DOTALL))
    assert len([word for word in prose.split() if re.search(r"\w", word)]) <= 700


def test_the_program_trains(capsys):
    [program] = BLOCKS
    names = {"__name__": "readme"}
    exec(program, names)
    output = capsys.readouterr().out
    [loss] = re.findall(r"^loss (\S+)$", output, flags=re.MULTILINE)
    assert float(loss) < 0.05
    assert "on 8 ranks" in output and re.search(r"^gradients of weights .* all-reduce", output, flags=re.MULTILINE)
    assert names["model"][0].weight.placement == flow.placement.all("cpu")


def test_one_word_names_the_devices():
    [program] = BLOCKS
    assert program.count('"cpu"') == 1


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", RULES, flags=re.DOTALL))
def test_the_quoted_rule_stands_in_the_source(block):
    assert any(block in path.read_text() for path in (ROOT / "sbpjax").rglob("*.py"))


def test_paths_exist():
    paths = re.findall(r"`((?:sbpjax|examples|docs|tests)/[^`]*)`", README)
    paths += re.findall(r"\]\((docs/[^)#]*)[)#]", README)
    assert len(paths) > 10
    for path in paths:
        assert list(ROOT.glob(path.rstrip("/"))), path


def test_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"(?:^|`)make (\w+)", README, flags=re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    extras = (ROOT / "pyproject.toml").read_text()
    for extra in set(re.findall(r"\.\[(\w+)\]", README)):
        assert re.search(rf"^{extra} = \[", extras, flags=re.MULTILINE), extra


def test_names_exist():
    for name in set(re.findall(r"`flow\.(\w+)", README)) | set(re.findall(r"flow\.(\w+)\(", README)):
        assert hasattr(flow, name), name
