"""Modules that are rows of `_core.compat.reexports`: they import, show and pickle their names as if they had files."""

import importlib
import inspect
import pickle
import pydoc
import subprocess
import sys

import pytest

import sbpjax
from sbpjax import nn
from sbpjax._core.compat.reexports import REEXPORTS


@pytest.mark.parametrize("module_path", REEXPORTS)
def test_every_row_is_a_module(module_path):
    module = importlib.import_module(f"sbpjax.{module_path}")
    assert sys.modules[module.__name__] is module and module.__doc__.endswith(".")
    parent, _, last = module.__name__.rpartition(".")
    assert getattr(importlib.import_module(parent), last) is module
    names = [name for name in dir(module) if not name.startswith("__")]
    assert names and all(hasattr(module, name) for name in names)
    assert not hasattr(module, "no_such_name") and importlib.reload(module) is module


def test_names_are_those_of_the_layers():
    from sbpjax.nn.modules.conv import Conv2d, _ConvNd, _ConvTransposeNd
    from sbpjax.nn.modules.module import Module, _IncompatibleKeys

    assert Conv2d is nn.Conv2d and issubclass(Conv2d, _ConvNd) and not issubclass(Conv2d, _ConvTransposeNd)
    assert Module is nn.Module is nn.modules.Module and nn.modules.Linear is nn.Linear
    assert isinstance(nn.Linear(1, 1).load_state_dict({}, strict=False), _IncompatibleKeys)
    assert "Flatten" not in dir(nn.modules.linear) and "FusedBatchNorm1d" not in dir(nn.modules.batchnorm)
    with pytest.raises(ModuleNotFoundError, match=r"sbpjax\.nn\.modules\.no_such_module"):
        importlib.import_module("sbpjax.nn.modules.no_such_module")


def test_settings_of_nccl_are_functions_of_their_module():
    from sbpjax.boxing import nccl

    setter = nccl.set_stream_num
    assert pickle.loads(pickle.dumps(setter)) is setter and "number of OneFlow's streams" in pydoc.render_doc(setter)
    assert str(inspect.signature(nccl.enable_use_compute_stream)).startswith("(val: 'bool' = False)")
    with pytest.raises(TypeError):
        setter()
    assert "set_stream_num" in pydoc.plain(pydoc.render_doc(nccl))


def test_rows_cost_nothing_until_they_are_imported():
    code = "import sys, sbpjax; print([n for n in sys.modules if n[7:] in sbpjax._core.compat.reexports.REEXPORTS])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]" and sbpjax.boxing.nccl
