"""The examples in the docstrings of datasets, transforms, operations, metrics and recipes print what they say."""

import doctest
import importlib
import os
import pkgutil

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import vision

PACKAGES = ("datasets", "ops", "training", "transforms", "models.detection")


def modules():
    yield "sbpjax.vision.metrics"
    yield "sbpjax.vision.models.segmentation"
    yield "sbpjax.vision.pictures"
    for name in PACKAGES:
        package = importlib.import_module(f"sbpjax.vision.{name}")
        yield from (f"sbpjax.vision.{name}.{info.name}" for info in pkgutil.iter_modules(package.__path__))


def examples(name):
    module = importlib.import_module(name)
    room = importlib.import_module(name.rpartition(".")[0])
    space = {"flow": flow, "np": np, "os": os} | {key: value for key, value in vars(room).items() if key[0] != "_"}
    found = doctest.DocTestFinder(exclude_empty=True).find(module, globs=space | vars(module))
    return [one for one in found if one.examples]


@pytest.mark.parametrize("name", [name for name in modules() if examples(name)])
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert vision.transforms  # a face that is read lazily
    for one in examples(name):
        runner, failed = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), []
        runner.run(one, out=failed.append)
        assert runner.failures == 0, "".join(failed)
