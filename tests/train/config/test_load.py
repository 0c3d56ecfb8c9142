"""Configurations are read from files, with what they import from beside and above them."""

import importlib
import os
import py_compile
import sys

import pytest

from sbpjax.errors import ConfigError
from sbpjax.train.config import LazyCall, instantiate, load_config, save_config

FILE = """
import math
from sbpjax.train.config import LazyCall
from .parts.data import data
from ..common import steps

def twice(x):
    return 2 * x

call = LazyCall(twice)(x=steps)
function = dict(f=twice)
_hidden = 1
"""


@pytest.fixture
def file(tmp_path):
    folder = tmp_path / "runs v1.0" / "configs"
    (folder / "parts").mkdir(parents=True)
    (folder.parent / "common.py").write_text("steps = 5\n")
    (folder / "parts" / "data.py").write_text("from ...common import steps\ndata = {'length': steps}\n")
    path = folder / "gpt2.py"
    path.write_text(FILE)
    return path


def test_relative_imports_and_functions_of_the_file(file, monkeypatch):
    config = load_config(file)
    assert list(config) == ["data", "steps", "call", "function"]
    assert instantiate(config.call) == 10 and instantiate(config.function)["f"](4) == 8
    monkeypatch.chdir(file.parent)  # however it is named
    assert load_config("gpt2.py") == config
    (file.parent.parent / "common.py").write_text("steps = 6\n")
    assert load_config(file).data.length == 6


def test_a_module_and_its_neighbours_are_read_from_their_source(tmp_path, monkeypatch):
    """Also where a file changes within a second, keeps its size and has bytecode of the text before."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fresh_settings").mkdir()
    beside, module = tmp_path / "fresh_beside.py", tmp_path / "fresh_settings" / "small.py"
    beside.write_text("x = 1\n")
    module.write_text("from fresh_beside import x\ny = 1\n")
    for path in (beside, module):
        os.utime(path, (1e9, 1e9))
        py_compile.compile(str(path))
    for x in range(2, 5):
        beside.write_text(f"x = {x}\n")
        module.write_text(f"from fresh_beside import x\ny = {x}\n")
        for path in (beside, module):
            os.utime(path, (1e9, 1e9))
        for source in ("fresh_settings.small", "fresh_settings/small.py"):
            assert load_config(source) == {"x": x, "y": x}
    first = importlib.import_module("fresh_settings.small")
    load_config("fresh_settings.small")
    assert sys.modules["fresh_settings.small"] is first  # its classes stay the same while its file does
    for name in ("fresh_settings.small", "fresh_settings", "fresh_beside"):
        sys.modules.pop(name, None)


def test_a_function_of_a_saved_configuration_is_read_from_its_source(file, tmp_path):
    save_config(load_config(file), tmp_path / "run")
    for factor in (3, 4):
        file.write_text(FILE.replace("2 * x", f"{factor} * x"))
        assert instantiate(load_config(tmp_path / "run" / "config.yaml", allow=[str(tmp_path)]).call) == factor * 5


def test_a_neighbour_that_is_made_later_is_found(file):
    for number in range(3):  # within the second in which the folder was looked through
        (file.parent / f"later{number}.py").write_text(f"value = {number}\n")
        file.write_text(f"from .later{number} import value\n")
        assert load_config(file).value == number


def test_a_saved_configuration_is_the_same(file, tmp_path):
    config = load_config(file)
    save_config(config, tmp_path / "run")
    again = load_config(tmp_path / "run" / "config.yaml", allow=[str(tmp_path)])
    assert again == config and instantiate(again.call) == 10


def test_a_module_by_its_name():
    config = load_config("tests.train.config.small")
    assert config.steps == 3 and instantiate(config.box) == {"size": 3}


@pytest.mark.parametrize(
    ("text", "seen", "fix"),
    [
        ("steps = 1 +", "SyntaxError", ":1"),
        ("a = 1\nb = a.c", "AttributeError: 'int' object has no attribute 'c'", ":2"),
        ("from .missing import a", "ModuleNotFoundError", ":1"),
        ("a = {'b': object()}", "a object", "LazyCall(object)(...)"),
    ],
)
def test_files_that_do_not_run(text, seen, fix, tmp_path):
    (tmp_path / "c.py").write_text(text)
    with pytest.raises(ConfigError) as error:
        load_config(tmp_path / "c.py")
    lines = str(error.value).splitlines()
    assert seen in lines[1] and lines[3].endswith(fix)


@pytest.mark.parametrize("text", ["steps = 1 +", "a = 1\nb = a.c", "raise OSError(5)", "import json\njson.loads('{')"])
def test_modules_that_do_not_run(text, tmp_path, monkeypatch):
    (tmp_path / "damaged_settings.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"reading the configuration 'damaged_settings'"):
        load_config("damaged_settings")


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "gpt2.py").write_text("")
    with pytest.raises(ConfigError, match=r"fix:  .*gpt2\.py"):
        load_config(tmp_path / "gtp2.py")
    with pytest.raises(ConfigError, match="No module named 'nowhere'"):
        load_config("nowhere.config")
    assert LazyCall(dict)().keys()
