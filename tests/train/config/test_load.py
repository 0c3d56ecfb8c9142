"""Configurations are read from files, with what they import from beside and above them."""

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


def test_a_saved_configuration_is_the_same(file, tmp_path):
    config = load_config(file)
    save_config(config, tmp_path / "run")
    again = load_config(tmp_path / "run" / "config.yaml")
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
    told = str(error.value).splitlines()
    assert seen in told[1] and told[3].endswith(fix)


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "gpt2.py").write_text("")
    with pytest.raises(ConfigError, match=r"fix:  .*gpt2\.py"):
        load_config(tmp_path / "gtp2.py")
    with pytest.raises(ConfigError, match="No module named 'nowhere'"):
        load_config("nowhere.config")
    assert LazyCall(dict)().keys()
