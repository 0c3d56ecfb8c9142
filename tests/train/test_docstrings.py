"""The examples in the docstrings of training run, and print what they say."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import sbpjax
from sbpjax import train

FILES = [file.name for file in pkgutil.walk_packages(train.__path__, f"{train.__name__}.") if not file.ispkg]
SILENT = ("preprocess documents batches step hook log cli __main__ memory_estimate saved files checks names").split()


@pytest.mark.parametrize("file", FILES)
def test_examples(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they write files
    names = {"flow": sbpjax, "np": np}
    for room in ("data", "evaluation"):
        names |= vars(importlib.import_module(f"sbpjax.train.{room}"))
    module = importlib.import_module(file)
    found = [test for test in doctest.DocTestFinder().find(module, globs={**names, **vars(module)}) if test.examples]
    assert found or file.endswith(tuple(SILENT))
    for test in found:
        text = []
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=text.append)
        assert not text, "".join(text)
