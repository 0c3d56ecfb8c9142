"""The rooms of the house: imports run down the list of rooms, in no circle, and nobody inside asks the package's face.

`tests/support/packages.py` lists the package of each file. Imports that break the rule are in
`tests/support/import_exceptions.py`, which may only shrink: an import that is gone, or that breaks no rule any more,
has to leave the list. ``pytest tests/test_imports.py -s`` prints the figures.
"""

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.support.import_exceptions import COUNT, EXCEPTIONS
from tests.support.imports import circles, edges, inside_functions
from tests.support.packages import PACKAGES, package_of

ROOT = Path(__file__).resolve().parents[1]
FACE = "sbpjax/__init__.py"
LISTED = {(f"sbpjax/{source}", f"sbpjax/{target}") for source in EXCEPTIONS for target in EXCEPTIONS[source].split()}


@functools.cache  # parsing the package takes seconds, which every process that collects tests would pay
def import_edges():
    return edges(ROOT, "sbpjax")


@functools.cache
def links():
    return {(edge.source, edge.target) for edge in import_edges()}


@functools.cache
def links_on_face():
    return {link for link in links() if link[1] == FACE and package_of(link[0]) != "leaves"}


def runs_up(link):
    source, target = (PACKAGES.index(package_of(file)) for file in link)
    return target > source  # an import of the face as well: only leaves stand above it


def closes_a_circle(link, others):
    """Say whether there is a way back from the imported file to the one that imports it."""
    seen, ahead = set(), [link[1]]
    ways = {}
    for source, target in others:
        ways.setdefault(source, []).append(target)
    while ahead:
        file = ahead.pop()
        if file not in seen:
            seen.add(file)
            ahead += ways.get(file, [])
    return link[0] in seen


def where(some):
    lines = {(edge.source, edge.target): edge.line for edge in import_edges()}
    return "\n".join(f"  {s}:{lines[s, t]} imports {t}" for s, t in sorted(some))


def test_figures():
    top = {(edge.source, edge.target) for edge in import_edges() if not edge.late}
    up = {link for link in links() - links_on_face() if runs_up(link)}
    print("\ncircles of files, imports of modules:  ", [len(circle) for circle in circles(top)])
    print("circles of files, of functions as well:", [len(circle) for circle in circles(links())])
    print("imports that run up:", len(up), " imports of the face:", len(links_on_face()))
    print("exceptions:", len(LISTED))
    assert len(LISTED) == COUNT


def test_no_import_runs_up():
    up = {link for link in links() - links_on_face() - LISTED if runs_up(link)}
    assert not up, "these imports run up; import what lies below, or let the lower room declare a hook:\n" + where(up)


def test_nobody_inside_imports_the_face():
    face = links_on_face() - LISTED
    assert not face, "import from the module that defines the name, not from the package:\n" + where(face)


LEAVES = tuple(f"sbpjax/{name}/" for name in "models vision train serving one_embedding distributions".split())
ON_THEM = (
    "examples/",
    *(place.replace("sbpjax/", "tests/") for place in LEAVES),
    "tests/models_torch/",
    "tests/examples/",
)


def test_leaves_import_public_names_only():
    """`_core` belongs to the framework: no leaf, example or test of a leaf imports it."""
    pattern = re.compile(r"^\s*(?:from|import)\s+sbpjax\._core|^\s*from\s+\.+_core", re.MULTILINE)
    files = [path for place in (*LEAVES, *ON_THEM) for path in (ROOT / place).rglob("*.py")]
    assert len(files) > 300
    inside = [path.relative_to(ROOT).as_posix() for path in files if pattern.search(path.read_text())]
    assert not inside, f"these files import sbpjax._core, which is the framework's own: {inside}"


MOST_INSIDE_FUNCTIONS = 26  # it only falls


def test_imports_inside_functions_have_reasons():
    """Imports stand at the head of a module; `LazyModule` is for packages that are optional or slow to import."""
    found = [
        (f"{path.relative_to(ROOT).as_posix()}:{line}", reason)
        for path in sorted((ROOT / "sbpjax").rglob("*.py"))
        for line, reason in inside_functions(path.read_text())
    ]
    without = [place for place, reason in found if not reason]
    assert not without, f"move these imports to the head of the module, or give the reason in a comment: {without}"
    assert len(found) == MOST_INSIDE_FUNCTIONS, [place for place, _ in found]


def test_reasons_of_imports_inside_functions():
    text = """
import a
def f():
    import b
    import c  # noqa: F401
    from d import e  # type: ignore[x]  # slow
    # an extra
    import g
    lambda: __import__("h")
"""
    assert list(inside_functions(text)) == [(4, ""), (5, ""), (6, "slow"), (8, "an extra")]


def test_folders_are_small():
    """A folder of the package has at most 25 files."""
    many = {}
    for folder in {path.parent for path in (ROOT / "sbpjax").rglob("*.py")}:
        many[folder.relative_to(ROOT).as_posix()] = len([p for p in folder.glob("*.py") if p.name != "__init__.py"])
    assert {name: count for name, count in many.items() if count > 25} == {}


def test_no_circle():
    for circle in circles(links() - LISTED):
        inside = {link for link in links() - LISTED if circle.issuperset(link)}
        pytest.fail(f"these {len(circle)} files import each other in a circle:\n" + where(inside))


def test_exceptions_only_shrink():
    gone = LISTED - links()
    assert not gone, f"these imports are gone, take them off the list: {sorted(gone)}"
    kept = links() - LISTED
    harmless = {link for link in LISTED if not runs_up(link) and not closes_a_circle(link, kept)}
    assert not harmless, f"these imports break no rule any more, take them off the list: {sorted(harmless)}"


def test_the_map_for_contributors():
    """CONTRIBUTING has a line for every package and ground file, in the order of `PACKAGES`; re-exports need none."""
    shown = re.findall(r"^\| `((?:_core/)?\w+(?:/|\.py))` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    own = {
        path.relative_to(ROOT / "sbpjax").as_posix() + "/" * path.is_dir()
        for folder in (ROOT / "sbpjax", ROOT / "sbpjax/_core")
        for path in folder.iterdir()
        if path.name != "_core" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }
    faces = {name for name in own if is_face(ROOT / "sbpjax" / name)}
    assert set(shown) == own - faces - {"__init__.py", "_core/__init__.py"}
    assert len(shown) <= 28
    ranks = [PACKAGES.index(package_of(f"sbpjax/{name}")) for name in shown]
    assert ranks == sorted(ranks)


def is_face(path):
    """Say whether a file, or every file of a folder, holds imports alone, or hands on to a table of names."""
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return all(
        isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or ast.unparse(node).startswith(("(__getattr__, __dir__) = ", "__getattr__, __dir__ = "))
        or ast.unparse(node) == "if __name__ == '__main__':\n    main()"
        for file in files
        for node in ast.parse(file.read_text()).body
    )


def test_reading_of_imports(tmp_path):
    package = tmp_path / "p"
    (package / "low").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "low" / "__init__.py").write_text("def f():\n    from ..a import x\n")
    (package / "a.py").write_text(
        "from typing import TYPE_CHECKING\nfrom .low import b, f\nif TYPE_CHECKING:\n    from . import c\n"
    )
    (package / "low" / "b.py").write_text("import p.c\nfrom importlib import import_module\nimport_module('p.a')\n")
    (package / "d.py").write_text("c = LazyModule('p.c')\n")
    (package / "c.py").write_text("lazy = lambda: __import__('json')\nfrom p import anything\n")
    read = {(e.source, e.target, e.late) for e in edges(tmp_path, "p")}
    assert read == {
        ("p/low/__init__.py", "p/a.py", True),
        ("p/a.py", "p/low/b.py", False),
        ("p/a.py", "p/low/__init__.py", False),
        ("p/low/b.py", "p/c.py", False),
        ("p/low/b.py", "p/__init__.py", False),
        ("p/low/b.py", "p/a.py", True),
        ("p/c.py", "p/__init__.py", False),
        ("p/d.py", "p/c.py", True),
    }
    assert circles((s, t) for s, t, _ in read) == [{"p/a.py", "p/low/__init__.py", "p/low/b.py"}]
