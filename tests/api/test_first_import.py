"""What `import sbpjax` loads, and what waits until it is asked for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.packages import PACKAGES, package_of

ROOT = Path(__file__).resolve().parents[2]
FIRST = {*PACKAGES[: PACKAGES.index("functions") + 1], "distributed"}
ALSO = {
    "__init__.py",
    "_core/compat/__init__.py",
    "_core/compat/upper_rows.py",
    "_core/compat/reexports.py",
}  # they list the late names
CODE = """
import json, sys, jax
before = set(sys.modules)
import sbpjax
print(json.dumps({name: sys.modules[name].__file__ for name in set(sys.modules) - before}))
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


@pytest.fixture(scope="module")
def loaded():
    return json.loads(run(CODE))


def test_only_the_rooms_of_an_eager_op_are_loaded(loaded):
    ours = [Path(file).relative_to(ROOT).as_posix() for name, file in loaded.items() if name.startswith("sbpjax")]
    assert {"sbpjax/_core/functions/table/table.py", "sbpjax/_core/planner/exact.py"} <= set(ours)
    late = [file for file in ours if package_of(file) not in FIRST and file.removeprefix("sbpjax/") not in ALSO]
    assert not late, f"import sbpjax loads these, which no eager op needs: {sorted(late)}"


def test_no_other_package_is_loaded_and_no_pallas(loaded):
    others = {name.partition(".")[0] for name in loaded} - {"sbpjax", "jax"} - sys.stdlib_module_names
    assert not others and "jax._src.pallas.core" not in loaded


def test_the_other_rooms_are_there_when_they_are_asked_for():
    code = """
import sys, sbpjax
methods = set(dir(sbpjax.Tensor))
for name in ("nn", "optim", "graph", "amp", "autograd", "data", "utils", "_C", "pipeline", "run", "testing"):
    assert name == "_C" or name in dir(sbpjax), name
    assert getattr(sbpjax, name) is sys.modules[f"sbpjax.{name}"], name
assert set(dir(sbpjax.Tensor)) == methods
print(sbpjax.compile.__wrapped__ is sbpjax.graph.compile)
"""
    assert run(code) == "True\n"


def test_a_star_import_brings_the_late_names_too():
    code = """
from sbpjax import *
import sbpjax
print(set(name for name in dir(sbpjax) if not name.startswith("_")) - set(dir()), nn.Linear(2, 3)(randn(2)).shape)
"""
    assert run(code) == "set() sbpjax.Size([3])\n"
