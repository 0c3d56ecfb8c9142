"""Every method of `Tensor` is in the class body, in the list of methods, or a row of the table of ops."""

import ast
import re
from pathlib import Path

import sbpjax
from sbpjax._core.functions.table.table import names
from sbpjax._core.functions.tensor_methods import METHODS
from sbpjax._core.tensor.handle import tensor as handle

ROOT = Path(sbpjax.__file__).parent
OF_UPPER_PACKAGES = {"_repr_html_"}  # `_core.compat.upper_rows`
OF_TORCH = {  # of PyTorch's subclasses and DTensor, from when a program uses them
    "__init_subclass__", "__torch_function__", "_make_subclass",
    "_local_tensor", "device_mesh", "placements",
}  # fmt: skip


def names_in_body():
    (body,) = (
        node.body
        for node in ast.parse(Path(handle.__file__).read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "Tensor"
    )
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return functions | {name for node in body if isinstance(node, ast.Assign) for name in (node.targets[0].id,)}


def test_every_member_has_one_source():
    slots = set(sbpjax.Tensor.__slots__)
    implicit = {"__annotations__", "__doc__", "__module__"}
    sources = (names_in_body(), set(METHODS), set(names("Tensor")), slots, implicit, OF_UPPER_PACKAGES)
    assert set(vars(sbpjax.Tensor)) - OF_TORCH == set.union(*sources)
    assert sum(map(len, sources)) == len(set.union(*sources))


def test_list_gives_the_methods():
    assert sbpjax.Tensor.__getitem__ is METHODS["__getitem__"]
    assert sbpjax.Tensor.data is METHODS["data"]


def test_no_other_module_adds_members():
    adds = re.compile(r"setattr\(Tensor,|^Tensor\.\w+ = ", re.MULTILINE)
    found = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if adds.search(path.read_text())}
    table, late = "_core/functions/table/table.py", "_core/compat/upper_rows.py"
    of_torch = {f"_core/compat/torch_names/{name}.py" for name in ("subclass", "dtensor/tensor")}
    assert found == {"_core/functions/tensor_methods.py", table, late, *of_torch}
