"""`dir` of a public package or module lists public names."""

import importlib
import types
from pathlib import Path

import pytest

import sbpjax

ROOT = Path(sbpjax.__file__).parent
FOLDERS = [path.parent.relative_to(ROOT).parts for path in ROOT.rglob("__init__.py")]
PACKAGES = [".".join(["sbpjax", *parts]) for parts in sorted(FOLDERS) if not any(part[0] == "_" for part in parts)]
MODULES = [f"sbpjax.{path.stem}" for path in sorted(ROOT.glob("*.py")) if path.stem != "__init__"]
PYTORCH = {  # names that PyTorch has with an underscore, and programs import
    "sbpjax.distributions.kl": {"_KL_MEMOIZE", "_KL_REGISTRY"},
    "sbpjax.distributions.transforms": {"_InverseTransform"},
    "sbpjax.optim.lr_scheduler": {"_LRScheduler"},
    "sbpjax.utils.data": {"_utils"},
}


def is_helper(value):
    """Return whether an object of a module was imported for the module's own code."""
    if isinstance(value, types.ModuleType):
        return not value.__name__.startswith("sbpjax.")
    return not (getattr(value, "__module__", None) or "sbpjax").startswith("sbpjax")


@pytest.mark.parametrize("path", [*PACKAGES, *MODULES])
def test_dir_lists_public_names_only(path):
    module = importlib.import_module(path)
    names = [name for name in dir(module) if not (name.startswith("__") and name.endswith("__"))]
    private = {name for name in names if name.startswith("_")} - PYTORCH.get(path, set())
    helpers = [name for name in names if is_helper(vars(module).get(name))]
    assert (private, helpers) == (set(), [])


def test_hidden_modules_are_attributes():
    assert {"_C", "_core", "_oneflow_internal"}.isdisjoint(dir(sbpjax))
    assert sbpjax._C.relu is sbpjax.nn.functional.relu and sbpjax._oneflow_internal and sbpjax._core
