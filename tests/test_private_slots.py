"""Private slots of tensors are read in `_core/tensor/` alone; other packages use `_core.tensor.storage.payload`.

``pytest tests/test_private_slots.py -s`` prints the figure.
"""

import ast
from collections import Counter
from pathlib import Path

import pytest

from sbpjax._core.tensor import Tensor
from tests.support.packages import package_of

ROOT = Path(__file__).resolve().parents[1]
SLOTS = {name for name in Tensor.__slots__ if not name.startswith("__")}
METHODS = {"_fresh", "_fresh_edge", "_hold", "_own_meta", "_regenerate", "_set", "_set_payload"}


def uses(source: str) -> list[tuple[int, str]]:
    """Return line and name of each private slot or method of a tensor that a file reads, writes or names as text.

    An object's own attributes may have these names: ``self._kind`` counts in subclasses of `Tensor` alone.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in SLOTS | METHODS:
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own:
                found.append((node.lineno, node.attr))
        elif isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Tensor") for base in node.bases):
            inside = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self")
            found += [(n.lineno, n.attr) for n in inside if n.attr in SLOTS | METHODS]
        elif isinstance(node, ast.FunctionDef) and node.args.args and ast.unparse(node.args.args[0]) == "self: Tensor":
            inside = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self")
            found += [(n.lineno, n.attr) for n in inside if n.attr in SLOTS | METHODS]
        elif isinstance(node, ast.Constant) and node.value in SLOTS:
            found.append((node.lineno, node.value))
    return found


def test_no_other_room_reads_them():
    found = {}
    for path in sorted((ROOT / "sbpjax").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        if package_of(file) != "tensor":
            for line, name in uses(path.read_text()):
                found[f"{file}:{line} {name}"] = name
    print(f"\nprivate slots of tensors read in other rooms: {len(found)} {dict(Counter(found.values()))}")
    assert not found, "ask sbpjax._core.tensor.storage.payload instead:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("x._array", ["_array"]),
        ("x.grad._layout = None", ["_layout"]),
        ("f(x)._fresh()", ["_fresh"]),
        ("getattr(x, '_cell')", ["_cell"]),
        ("class A(Tensor):\n    def f(self): self._edge", ["_edge"]),
        ("def f(self: Tensor): self._ver", ["_ver"]),
        ("class A:\n    def f(self): self._kind; self._layout(x)", []),
        ("x.layout, x.array, x._version", []),
    ],
)
def test_what_counts(source, names):
    assert [name for _, name in uses(source)] == names
