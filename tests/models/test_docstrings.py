"""The examples in the docstrings of the models run, and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import sbpjax as flow
from sbpjax import models

FILES = [file.name for file in pkgutil.walk_packages(models.__path__, f"{models.__name__}.") if not file.ispkg]


def found_in(file):
    module = importlib.import_module(file)
    return [test for test in doctest.DocTestFinder().find(module, globs={"flow": flow}) if test.examples]


@pytest.mark.parametrize("file", FILES)
def test_examples(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write folders
    found = found_in(file)
    assert found or file.endswith(
        ("sharding", "llama.weights", "gpt2.weights", "bert.weights", "mixtral.weights", "t5.weights")
    )
    for test in found:
        text = []
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=text.append)
        assert not text, "".join(text)
