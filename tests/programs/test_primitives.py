"""Facts about primitives: the kinds do not contradict each other, and no other file lists primitives."""

import ast
from pathlib import Path

from sbpjax._core.programs import primitives
from tests.api.primitives import primitives as of_jax
from tests.support.packages import package_of

ROOT = Path(__file__).resolve().parents[2]
HOME = "sbpjax/_core/programs/primitives.py"
PACKAGES = ("programs", "planner", "compiler", "trace", "graph", "inspect")
MOST = 3  # names in one list
EVALUATOR = "sbpjax/_core/compiler/eager/evaluator"  # has a function for each primitive
KINDS = {name: kind for name, kind in vars(primitives).items() if isinstance(kind, frozenset)}


def listed(node, known: set[str]) -> set[str]:
    """Return the primitives that stand in one list, whatever its form; a string of which they are most is one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words = node.value.split()
        names = known.intersection(words)
        return names if len(names) > len(words) / 2 else set()
    children = {ast.Tuple: "elts", ast.List: "elts", ast.Set: "elts", ast.Dict: "keys", ast.Call: "args"}
    parts = getattr(node, children.get(type(node), ""), [])
    return known.intersection(x.value for x in parts if isinstance(x, ast.Constant) and isinstance(x.value, str))


def test_no_other_file_lists_primitives():
    known = {*of_jax(), *(name for kind in KINDS.values() for name in kind)}
    for path in ROOT.glob("sbpjax/**/*.py"):
        file = path.relative_to(ROOT).as_posix()
        if file == HOME or file.startswith(EVALUATOR) or package_of(file) not in PACKAGES:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = listed(node, known)
            assert len(names) <= MOST, f"{file}:{node.lineno} lists {sorted(names)}; kinds of primitives: {HOME}"


def test_what_contradicts_itself():
    assert not primitives.LIGHT & primitives.COSTLY
    assert not primitives.LIGHT & (primitives.PRODUCTS | primitives.SCATTERS | primitives.CONTROL)
    assert not primitives.SIMPLE & primitives.TRANSCENDENTAL and not primitives.TRANSCENDENTAL & primitives.SPECIAL
    assert not primitives.LINEAR & primitives.NONLINEAR
    assert not set(primitives.CALLS) & primitives.CONTROL
