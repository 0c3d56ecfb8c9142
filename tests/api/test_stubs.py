"""Editors and type checkers see a typed API: the generated stubs have every name, with its types.

The stubs are written into a copy of the package. The tests with pyright run where it is installed.
"""

import ast
import inspect
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sbpjax
from sbpjax.errors import SbpjaxError
from tests.api import coverage
from tests.op_specs.engine import SPECS
from tests.support.generate import Dtype, Gen, Input, walk
from tests.support.stubs.call_forms import forms
from tests.support.stubs.generate import ATTACHED, OF_TENSORS, package_with_stubs, texts, write
from tests.support.stubs.render import Types
from tests.support.stubs.vocabulary import RESULT_CLASSES

HERE = Path(__file__).parent / "typed"
PYRIGHT = shutil.which("pyright")
# Functions of priority 1 whose types leave something open, with the reason.
OPEN = {
    "what a file holds": "load nn.Module.state_dict nn.Module.load_state_dict nn.Graph.state_dict "
    "nn.Graph.load_state_dict optim.Optimizer.state_dict optim.Optimizer.load_state_dict "
    "optim.lr_scheduler.LRScheduler.state_dict optim.lr_scheduler.LRScheduler.load_state_dict",
    "hooks take what forward takes": "nn.Module.register_forward_hook nn.Module.register_forward_pre_hook",
    "as deep as the tensor has dims": "Tensor.tolist",
    "one rate, or one for each group": "optim.lr_scheduler.LRScheduler.get_lr",
    "what a user defines or hands in": "nn.Module.forward nn.Graph.build nn.Graph.trace nn.Graph.build_graph "
    "nn.Graph.set_grad_scaler optim.Optimizer.step optim.Optimizer.add_param_group",
}
REASON = {name: reason for reason, names in OPEN.items() for name in names.split()}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return package_with_stubs(tmp_path_factory.mktemp("package"))


def test_stubs_are_valid_and_beside_their_sources(package):
    stubs = {path.relative_to(package): path.read_text() for path in (package / "sbpjax").rglob("*.pyi")}
    assert len(stubs) >= 12 and stubs.keys() == texts().keys()
    for path, text in stubs.items():
        ast.parse(text, str(path))
        assert (package / path).with_suffix(".py").exists() or path.stem == ATTACHED


def test_write_deletes_stubs_of_earlier_sources(tmp_path):
    (tmp_path / "sbpjax").mkdir()
    (tmp_path / "sbpjax" / "gone.pyi").touch()
    write(tmp_path)
    assert {path.relative_to(tmp_path) for path in (tmp_path / "sbpjax").rglob("*.pyi")} == set(texts())


def names_in(text):
    """Return the names that a stub defines or shows."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            found.add(ast.unparse(node.target))
    return found


def test_an_editor_completes_every_name(package):
    def public(space):
        return {n for n in dir(space) if not n.startswith("_") and not inspect.ismodule(getattr(space, n))}

    home = sys.modules[sbpjax.Tensor.__module__]
    assert public(sbpjax) <= names_in((package / "sbpjax" / "__init__.pyi").read_text())
    (attached,) = (path.read_text() for path in package.rglob(f"{ATTACHED}.pyi"))
    of_dtensor = {"device_mesh", "placements"}  # set where a program uses DTensor
    assert public(sbpjax.Tensor) - of_dtensor <= names_in(attached) | names_in(inspect.getsource(home))


def most_used():
    """Return the functions and methods that model libraries use or that PyTorch has too, by their path below sbpjax."""
    spaces = (*OF_TENSORS, "Tensor", "autograd", "nn.Module", "nn.Graph", "optim.Optimizer")
    spaces += ("optim.lr_scheduler.LRScheduler",)
    for space, rows in coverage.names().items():
        here = space.removeprefix("oneflow").removeprefix(".")
        for priority, kind, name in rows:
            if here in spaces and priority == 1 and kind in ("function", "method"):
                if not name.startswith("_") or here == "Tensor":
                    yield f"{here}.{name}".lstrip(".")


def stated(path):
    """Return the forms of calls that a type checker reads: the stub's, or those of the source."""
    space = path.rpartition(".")[0]
    if space in (*OF_TENSORS, "Tensor"):
        return forms(path, Types())
    return [str(inspect.signature(inspect.unwrap(coverage.resolve(path))))]


def leaves_open(form):
    function = ast.parse(f"def f{form}: ...").body[0]
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    untyped = [a for a in arguments if a.annotation is None and a.arg != "self"] or function.returns is None
    bare = r"\bAny\b|\b(tuple|list|dict|Callable|Sequence|Iterable|Mapping|Iterator)\b(?!\[)"
    return bool(untyped or re.search(bare, form))


def test_the_most_used_functions_say_their_types():
    paths = list(most_used())
    assert len(paths) >= 300
    vague = {path: form for path in paths for form in stated(path) if leaves_open(form)}
    assert {path: form for path, form in vague.items() if path not in REASON} == {}
    assert set(REASON) <= set(paths)


def test_what_leaves_types_open_is_told_apart():
    assert leaves_open("(input, other: int) -> Tensor")
    assert leaves_open("(input: typing.Any) -> Tensor")
    assert leaves_open("(input: Tensor) -> builtins.tuple")
    assert not leaves_open("(self, dim: builtins.int | builtins.tuple[builtins.int, ...] = (0, 1)) -> Tensor")


def built(value):
    if isinstance(value, Input):
        return sbpjax.tensor(np.asarray(value.value))
    return getattr(sbpjax, value.name) if isinstance(value, Dtype) else value


def agrees(result, stated):
    """Return whether what a call gave is of the type that a stub says."""
    if isinstance(result, sbpjax.Tensor):
        return re.search(r"(^|\| )_Tensor( |$)", stated)
    if type(result).__name__ in stated or stated in ("typing.Any", "None" if result is None else ""):
        return True
    return isinstance(result, tuple) and ("tuple[" in stated or stated.removeprefix("_") in RESULT_CLASSES)


PARTS = 12


@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, PARTS))])
def test_functions_return_what_stubs_say(part):
    wrong = {}
    for i, (name, spec) in enumerate(sorted(SPECS.items())):
        if i % PARTS != part or spec.alias_of:
            continue
        call = spec.make(Gen(0))
        try:
            result = coverage.resolve(name)(*walk(call.args, built), **walk(call.kwargs, built))
        except SbpjaxError:
            continue  # drawn to be refused
        results = [form.rpartition(" -> ")[2] for form in forms(name, Types())]
        if not any(agrees(result, stated) for stated in results):
            wrong[name] = (type(result), results)
    assert wrong == {}


@pytest.fixture(scope="module")
def found(tmp_path_factory, package):
    if PYRIGHT is None:
        pytest.skip("needs pyright: pip install pyright")
    folder = tmp_path_factory.mktemp("typed")
    for name in ("program.py", "mistakes.py"):
        shutil.copy(HERE / name, folder)
    config = folder / "pyrightconfig.json"
    config.write_text(json.dumps({"typeCheckingMode": "basic", "extraPaths": [str(package)]}))
    command = [PYRIGHT, "-p", str(config), "--pythonpath", sys.executable, "--outputjson"]
    stated = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    assert stated["summary"]["filesAnalyzed"] == 2
    return [(Path(d["file"]).name, d["range"]["start"]["line"], d["message"]) for d in stated["generalDiagnostics"]]


def test_pyright_knows_every_type_of_a_program(found):
    assert [one for one in found if one[0] == "program.py"] == []


def test_pyright_finds_mistakes(found):
    for number, line in enumerate((HERE / "mistakes.py").read_text().splitlines()):
        messages = [message for file, at, message in found if file == "mistakes.py" and at == number]
        wanted = line.partition("# mistake: ")[2]
        assert bool(messages) == bool(wanted), (number + 1, messages)
        assert wanted in " ".join(messages)


def test_the_program_runs(capsys):
    runpy.run_path(str(HERE / "program.py"))
    assert capsys.readouterr().out.splitlines()[-1].endswith(" 16")
