"""`LazyModule` imports on first use, and hides no error."""

import sys

import pytest

from sbpjax._core.runtime.lazy_module import LazyModule


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
