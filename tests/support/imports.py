"""Which file of a package imports which: read from the source, so that imports inside functions count as well.

    from sbpjax.nn import Module, functional   # in sbpjax/optim/algorithms/sgd.py, line 3

is two edges: to ``sbpjax/nn/__init__.py`` for the class and to ``sbpjax/_core/functions/nn.py`` for the module.
What stands under ``if TYPE_CHECKING:`` never runs and is left out. ``import_module("sbpjax.x")`` and
``LazyModule("sbpjax.x")`` with the name written out are imports inside functions like any other.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LAZY = ("import_module", "importlib.import_module", "LazyModule", "_LazyModule")


@dataclass(frozen=True)
class Edge:
    """One file imports another.

    Attributes:
        source: the importing file, from the root of the repository: ``sbpjax/optim/algorithms/sgd.py``.
        target: the imported file.
        line: where the import stands.
        late: it stands inside a function and runs when that is called.
    """

    source: str
    target: str
    line: int
    late: bool


def edges(root: Path, package: str) -> list[Edge]:
    """Return every import among the files of a package.

    Args:
        root: the folder that holds the package.
        package: its name.
    """
    files = {
        _module(path.relative_to(root)): path.relative_to(root).as_posix() for path in root.glob(f"{package}/**/*.py")
    }
    found = []
    for module, file in files.items():
        inside = module if file.endswith("__init__.py") else module.rpartition(".")[0]
        for node, late in _imports(ast.parse((root / file).read_text())):
            for name in _named(node, inside, files):
                target = files.get(name)
                if target not in (None, file):
                    found.append(Edge(file, target, node.lineno, late))
    return found


def inside_functions(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and reason of each import statement inside a function; the reason is a comment beside or above it."""
    lines = text.splitlines()
    for node, late in _imports(ast.parse(text)):
        if late and isinstance(node, ast.Import | ast.ImportFrom):
            above = lines[node.lineno - 2].strip()
            beside = re.split(r"#\s*(?:noqa|type:|pyright:)[^#]*", " ".join(lines[node.lineno - 1 : node.end_lineno]))
            reason = "".join(beside).partition("#")[2] or (above if above.startswith("#") else "")
            yield node.lineno, reason.strip("# ")


def circles(links: Iterable[tuple[str, str]]) -> list[set[str]]:
    """Return the strongly connected components of more than one file, the largest first."""
    graph = defaultdict(set)
    for source, target in links:
        graph[source].add(target)
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_files: list[str] = []
    found = []

    def enter(file: str) -> tuple[str, Iterator[str]]:
        number[file] = low[file] = len(number)
        open_files.append(file)
        return file, iter(sorted(graph.get(file, ())))

    for start in sorted(graph):  # Tarjan's algorithm, with a stack of its own: the longest path has hundreds of files
        stack = [] if start in number else [enter(start)]
        while stack:
            file, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[file])
                if low[file] == number[file]:
                    first = open_files.index(file)
                    component = set(open_files[first:])
                    del open_files[first:]
                    if len(component) > 1:
                        found.append(component)
            elif target not in number:
                stack.append(enter(target))
            elif target in open_files:
                low[file] = min(low[file], number[target])
    return sorted(found, key=lambda component: (-len(component), min(component)))


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(node: ast.AST, late: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for other in child.orelse:
                yield from _imports(other, late)
        elif isinstance(child, ast.Import | ast.ImportFrom | ast.Call):
            yield child, late or (isinstance(child, ast.Call) and ast.unparse(child.func) in LAZY)
            yield from _imports(child, late)
        else:
            yield from _imports(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def _named(node: ast.AST, inside: str, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the dotted names that an import asks for: the module if the package has one, else what holds the name."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
            if alias.asname is None:
                yield alias.name.partition(".")[0]  # the name that is bound
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = inside.split(".")
            base = ".".join([*parents[: len(parents) - node.level + 1], *([node.module] if node.module else [])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if inner in files else base
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in LAZY:
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            yield node.args[0].value
