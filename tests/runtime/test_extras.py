"""The command that installs an extra: the packages that the installed package states, nested extras included."""

from importlib import metadata

import pytest

from sbpjax._core.runtime import extras

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
    assert extras.pip_install(extra) == command


def test_pip_install_of_a_folder_on_the_path_names_the_extra(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert extras.pip_install("serve") == 'pip install ".[serve]"'
