"""Stubs for editors and type checkers, written from the live package by `make stubs` and for a wheel; not in git.

    sbpjax.sin      made from a row of a table when the package is imported: no editor sees it
    sbpjax.pyi      def sin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

A stub stands where names are made or loaded in ways that only a running Python knows: the package's face, the modules
of functions, and what other modules attach to `Tensor`. Everything else is read from its source.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import sbpjax
from sbpjax._core.functions.table.texts import ARGUMENTS, IGNORED, MAKING, SEVERAL_DIMS
from tests.support.stubs.call_forms import annotation_in_source, doc, forms, resolve
from tests.support.stubs.render import Types
from tests.support.stubs.vocabulary import NOT_PUBLIC, RESULT_CLASSES

ROOT = Path(__file__).resolve().parents[3]
OF_TENSORS = ("", "_C", "fft", "linalg", "special", "nn.functional", "nn.init")
FACES = (*OF_TENSORS, "nn", "nn.utils", "utils", "utils.data")  # the last ones show what stands elsewhere as it is
LAZY_NAMES = {  # names that `dir` does not show before they are asked for, and folders that are loaded then
    "": tuple(sbpjax.__getattr__.modules),
    "nn": ("Graph", "graph", "modules", "parameter"),
    "nn.utils": ("parametrizations", "parametrize", "stateless"),
    "utils": ("checkpoint", "data", "hooks", "load_library", "model_zoo", "tensor"),
    "utils.data": ("GlobalLoader", "dataloader", "dataset", "distributed", "sampler"),
}
ATTACHED = "attached"  # the stub beside the class, which it is the base of: see its source
_NOTE = '"""Written by `make stubs` from the live package; do not edit."""'
_NOT_ATTACHED = (
    "__dict__",
    "__weakref__",
    "__slots__",
    "__module__",
    "__doc__",
    "__annotations__",
    "__init__",
    "__hash__",
)


@functools.cache
def texts() -> dict[Path, str]:
    """Return the text of every stub by its path from the root of the repository."""
    found = {_path(space): face(space) for space in FACES}
    found[_home(sbpjax.Tensor).with_name(f"{ATTACHED}.pyi")] = attached()
    return found


def _home(cls: type) -> Path:
    return Path(inspect.getsourcefile(cls)).relative_to(ROOT)


def _path(space: str) -> Path:
    file = Path(importlib.import_module(f"sbpjax.{space}".rstrip(".")).__file__)
    return file.with_suffix(".pyi").relative_to(ROOT)


def face(space: str) -> str:
    """Return the stub of a module: its functions, and the other names that it shows."""
    module = importlib.import_module(f"sbpjax.{space}".rstrip("."))
    known = Types()
    lines = []
    for name in sorted({*dir(module), *vars(module), *LAZY_NAMES.get(space, ())}):
        if name.startswith("_") and name not in ("_C", "__version__") or name in NOT_PUBLIC:
            continue
        path = f"{space}.{name}".lstrip(".")
        found = resolve(path)
        if isinstance(found, types.ModuleType):
            shown = name in LAZY_NAMES.get(space, ()) or name in _imported(module)
            lines += _module(module, name, found) if shown else []  # others are loaded by chance
        elif isinstance(found, type):
            lines += _class(name, found)
        elif inspect.isroutine(found) and _is_own(found):
            home = annotation_in_source(path, in_full=space in OF_TENSORS)
            here = home in (None, module.__name__)
            lines += function(path, name, known) if here else [f"from {home} import {found.__name__} as {name}"]
        elif not inspect.isroutine(found):
            lines.append(f"{name}: {known.of_object(type(found), name)}")
    return _joined(module.__doc__, known, lines)


def attached() -> str:
    """Return the stub of what other modules attach to `Tensor`: the base that type checkers see."""
    cls = sbpjax.Tensor
    known = Types()
    lines = ["class Attached:"]
    own = _in_body(cls)
    for name, member in sorted(vars(cls).items()):
        if name in own or name in _NOT_ATTACHED or isinstance(member, types.MemberDescriptorType):
            continue
        if name.startswith("_") and not name.endswith("__"):
            lines.append("    " + f"{name}: {known.render('Any', vars(sys.modules['typing']))}")
        elif isinstance(member, property):
            lines += _indented(attribute(name, member, known))
        elif inspect.isroutine(member):
            lines += _indented(function(f"Tensor.{name}", name, known))
    results = []
    for name, fields in RESULT_CLASSES.items():
        results += [f"class {name}(typing.NamedTuple):", *[f"    {field}: _Tensor" for field in fields.split()], ""]
    known.modules.add("typing")
    known.names["_Tensor"] = f"{cls.__module__} Tensor"
    return _joined("What other modules attach to `Tensor`.", known, [*results, *lines])


def _in_body(cls: type) -> set[str]:
    """Return the names that the source of a class defines itself."""
    body = next(
        n for n in ast.parse(Path(ROOT / _home(cls)).read_text()).body if getattr(n, "name", "") == cls.__name__
    )
    names = {n.name for n in body.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    for node in body.body:
        for target in [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", []):
            names.add(ast.unparse(target))
    return names


def _joined(annotation: str | None, known: Types, lines: list[str]) -> str:
    first = (annotation or "").strip().splitlines()[:1]
    return "\n".join([_NOTE, f"# {first[0]}" if first else "", "", *known.imports(), "", *lines]) + "\n"


def _is_own(found: object) -> bool:
    return getattr(inspect.unwrap(found), "__module__", "").startswith("sbpjax")


def _module(module: types.ModuleType, name: str, found: types.ModuleType) -> list[str]:
    package, _, last = found.__name__.rpartition(".")
    if not found.__name__.startswith("sbpjax") or module.__name__ not in (package, found.__name__):
        return []
    return [f"from {package} import {last} as {name}"]


@functools.cache
def _imported(module: types.ModuleType) -> set[str]:
    """Return the names that a module's source imports."""
    nodes = [n for n in ast.parse(inspect.getsource(module)).body if isinstance(n, (ast.Import, ast.ImportFrom))]
    return {alias.asname or alias.name for node in nodes for alias in node.names}


def _class(name: str, found: type) -> list[str]:
    home = found.__module__
    if not home.startswith("sbpjax") or getattr(sys.modules[home], found.__name__, None) is not found:
        return []
    return [f"from {home} import {found.__name__} as {name}"]


def function(path: str, name: str, known: Types) -> list[str]:
    """Return the lines of a function."""
    several = forms(path, known)
    lines = []
    for form in several:
        if len(several) > 1:
            known.modules.add("typing")
            lines.append("@typing.overload")
        lines += [f"def {name}{form}:", *_indented(_docstring(doc(path)))]
    return lines


def attribute(name: str, member: property, known: Types) -> list[str]:
    """Return the lines of a property."""
    from tests.support.stubs.call_forms import _result

    result = _result(f"Tensor.{name}", member.fget, inspect.signature(member.fget), known)
    lines = ["@property", f"def {name}(self) -> {result}:", *_indented(_docstring(inspect.getdoc(member.fget) or ""))]
    if member.fset is not None:
        lines += [f"@{name}.setter", f"def {name}(self, value: {result}) -> None: ..."]
    return lines


ALIKE = {
    "a tensor.",
    "a tensor or a number.",
    "a list of tensors.",
    IGNORED,
    SEVERAL_DIMS,
    *ARGUMENTS.values(),
    *MAKING.values(),
}


def _docstring(text: str) -> list[str]:
    """Return what a stub says: the text up to the results, without arguments that are alike everywhere."""
    text = re.split(r"\n\n(?:Returns|Raises|Source|Example):\n", text)[0]
    text = text.partition("\n\n")[0] if text.startswith("Write the result of `") else text
    lines = [line for line in text.splitlines() if line.partition(": ")[2] not in ALIKE]
    text = "\n".join(lines).removesuffix("Args:").strip()
    if not text:
        return ["..."]
    text = text.replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text += " "
    lines = f'"""{text}'.splitlines()
    return [*lines, '"""'] if len(lines) > 1 else [f'{lines[0]}"""']


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def write(root: Path) -> None:
    """Write the stubs beside the sources in a copy of the repository, and delete stubs of earlier sources."""
    for path in (root / "sbpjax").rglob("*.pyi"):
        if path.relative_to(root) not in texts():
            path.unlink()
    for path, text in texts().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def package_with_stubs(root: Path) -> Path:
    """Copy the package to a folder, write its stubs there, and return the folder."""
    shutil.copytree(ROOT / "sbpjax", root / "sbpjax", ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    # In a process of its own: the names that a package shows depend on the modules that were imported.
    subprocess.run([sys.executable, "-m", __name__, root], cwd=ROOT, check=True)
    return root


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
