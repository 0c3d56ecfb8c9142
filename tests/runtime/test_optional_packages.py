"""`LazyModule` imports on first use, and hides no error; the command that installs an extra names its packages."""

import sys
from importlib import metadata

import pytest

from sbpjax._core.runtime.optional_packages import LazyModule, pip_install


@pytest.fixture
def counted(tmp_path, monkeypatch):
    (tmp_path / "counted_module.py").write_text("value = [1]\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield LazyModule("counted_module")
    sys.modules.pop("counted_module", None)


def test_module_is_imported_on_first_use(counted):
    assert "counted_module" not in sys.modules
    value = counted.value
    assert sys.modules["counted_module"].value is value is counted.value


def test_replaced_attribute_is_seen(counted, monkeypatch):
    assert counted.value == [1]
    monkeypatch.setattr("counted_module.value", [2])
    assert counted.value == [2]


def test_inspection_imports_nothing(counted):
    assert not hasattr(counted, "__wrapped__") and "counted_module" not in sys.modules


def test_missing_module_and_attribute_raise_as_an_import_does(counted):
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        LazyModule("no_such_module").name  # noqa: B018
    with pytest.raises(AttributeError, match="counted_module.*other"):
        counted.other  # noqa: B018


STATED = [
    "jax>=0.10",
    'onnx>=1.20; extra == "openvino"',
    'openvino>=2026.4; extra == "openvino"',
    'sbpjax[openvino]; extra == "int8"',
    'nncf>=3.4 ; python_version >= "3.11" and extra == "int8"',
    "pyarrow; extra == 'parquet'",
]


@pytest.mark.parametrize(
    "extra, command",
    [
        ("openvino", 'pip install "onnx>=1.20" "openvino>=2026.4"'),
        ("int8", 'pip install "onnx>=1.20" "openvino>=2026.4" "nncf>=3.4"'),
        ("parquet", "pip install pyarrow"),
        ("unknown", 'pip install ".[unknown]"'),
    ],
)
def test_pip_install_names_the_packages_of_an_extra(monkeypatch, extra, command):
    monkeypatch.setattr(metadata, "requires", lambda name: STATED)
    assert pip_install(extra) == command


def test_pip_install_of_a_folder_on_the_path_names_the_extra(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert pip_install("serve") == 'pip install ".[serve]"'
