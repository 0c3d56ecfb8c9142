"""The examples in the docstrings of the models run, and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import sbpjax as flow
from sbpjax.vision import models

FILES = [
    file.name
    for file in pkgutil.walk_packages(models.__path__, f"{models.__name__}.")
    if not file.ispkg and f".{file.name.split('.')[3]}" != ".vit"
]
QUICK = tuple(f".{name}" for name in "layers windows truth".split())


@pytest.mark.parametrize(
    "file", [f if f.endswith(QUICK) else pytest.param(f, marks=pytest.mark.exhaustive) for f in FILES]
)
def test_examples(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    module = importlib.import_module(file)
    for test in doctest.DocTestFinder().find(module, globs={"flow": flow}):
        text = []
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=text.append)
        assert not text, "".join(text)
