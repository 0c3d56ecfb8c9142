"""Which of OneFlow's public names exist here, and which of them have a spec; writes `docs/reference/api_coverage.md`.

    python -m tests.api.coverage          # write the page
    python -m tests.api.coverage --print  # the missing names, by priority

`oneflow_api.json` holds the names: namespace → "priority kind" → names. Priority 1: used by model libraries or shared
with PyTorch; 2: documented or tested by OneFlow; 3: the rest, most of it OneFlow's own making ("internal": imports that
leak, modules that are no API, dunders).
"""

from __future__ import annotations

import collections
import functools
import importlib
import json
import sys
import warnings
from pathlib import Path

import sbpjax
import tests.op_specs  # noqa: F401  # registers the specs
from sbpjax._core.functions.table.absent_names import TABLE, row
from tests.op_specs.engine import SPECS
from tests.op_specs.engine.excuses import EXCUSES

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "reference" / "api_coverage.md"
# Names that Python or the design leaves nothing to do for.
NEEDLESS = {"oneflow.nn.Graph.__del__": "a graph holds nothing that Python does not release"}
# Attributes that instances have and classes do not show.
INSTANCES = {
    "oneflow.nn.Module": lambda: sbpjax.nn.Linear(1, 1),
    "oneflow.nn.Graph": lambda: sbpjax.nn.Graph(),
    "oneflow.optim.Optimizer": lambda: sbpjax.optim.SGD([sbpjax.zeros(1, requires_grad=True)], lr=0.1),
    "oneflow.Tensor": lambda: sbpjax.zeros(1),
    "oneflow.nn.Parameter": lambda: sbpjax.nn.Parameter(sbpjax.zeros(1)),
    "oneflow.Generator": lambda: sbpjax.Generator(),
    "oneflow.autograd.Function": lambda: sbpjax.autograd.function.FunctionCtx,
    "oneflow.optim.lr_scheduler.LRScheduler": lambda: sbpjax.optim.lr_scheduler.StepLR(
        sbpjax.optim.SGD([sbpjax.zeros(1, requires_grad=True)], lr=0.1), 1
    ),
}


@functools.cache
def names() -> dict[str, list[tuple[int, str, str]]]:
    """Return for every namespace its names as ``(priority, kind, name)``."""
    found = {}
    for space, groups in json.loads((HERE / "oneflow_api.json").read_text()).items():
        rows = [(*key.split(" "), name) for key, several in groups.items() for name in several.split()]
        found[space] = sorted((int(p), kind, name) for p, kind, name in rows)
    return found


@functools.cache
def instance(space: str):
    """Return an instance of the class that a namespace is, None if it is not one of those above."""
    try:
        return INSTANCES[space]()
    except (KeyError, AttributeError, TypeError):
        return None


@functools.cache
def resolve(path: str):
    """Return the object of a dotted name below sbpjax, or None."""
    if not path:
        return sbpjax
    parent, _, last = path.rpartition(".")
    base = resolve(parent)
    if base is None:
        return None
    try:
        return getattr(base, last)
    except (AttributeError, ImportError):
        pass
    try:
        return importlib.import_module(f"sbpjax.{path}")
    except ImportError:
        return None


def present(space: str, name: str) -> bool:
    """Return whether sbpjax has a name of OneFlow's."""
    where = space.removeprefix("oneflow").removeprefix(".")
    if f"{space}.{name}" in NEEDLESS:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        home = resolve(where)
        if home is None:
            return False
        if resolve(f"{where}.{name}" if where else name) is not None:
            return True
        annotated = any(name in vars(c).get("__annotations__", ()) for c in getattr(home, "__mro__", ()))
        return annotated or hasattr(instance(space), name)


def specced(space: str, name: str) -> bool:
    """Return whether the op of a name has a spec."""
    path = f"{space}.{name}".removeprefix("oneflow.")
    specs = SPECS
    if path in specs or path.removesuffix("_") in specs:
        return True
    last = name.removesuffix("_") if name.endswith("_") and not name.endswith("__") else name
    return space in ("oneflow.Tensor", "oneflow._C") and (
        last in specs or f"Tensor.{name}" in specs or f"nn.functional.{last}" in specs
    )


def has_spec(op: str) -> bool:
    """Return whether a public op has a spec; functions, methods and what writes (``abs_``) share one."""
    specs = SPECS
    if op in specs:
        return True
    name = op.removeprefix("Tensor.")
    if "." in name:
        return False
    forms = (name, name.removesuffix("_"))
    namespaces = ("", "Tensor.", "nn.functional.", "linalg.")
    return any(f"{namespace}{form}" in specs for namespace in namespaces for form in forms)


@functools.cache
def missing(priority: int) -> dict[str, list[str]]:
    """Return the names of a priority that sbpjax does not have, by namespace."""
    found = {}
    for space, rows in names().items():
        lacking = [name for p, kind, name in rows if p == priority and not present(space, name)]
        if lacking:
            found[space] = lacking
    return found


def share(priority: int) -> float:
    """Return the share of names of a priority that exist."""
    total = sum(p == priority for rows in names().values() for p, _, _ in rows)
    return 1 - sum(map(len, missing(priority).values())) / total


def page() -> str:
    """Return the text of the page."""
    lines = [
        "# Coverage of OneFlow's names",
        "",
        "`make api` generates this page, and `tests/api` compares it with the package. Names that libraries use, or",
        "that PyTorch also has, have priority 1; names that OneFlow documents or tests, priority 2; all others,",
        "priority 3. An op has a spec if `tests/op_specs` tests its values, gradients, forms and layouts. Classes,",
        "modules and other names have separate tests.",
        "",
        "| priority | names | in sbpjax | share |",
        "| --- | ---: | ---: | ---: |",
    ]
    for priority in (1, 2, 3):
        total = sum(p == priority for rows in names().values() for p, _, _ in rows)
        here = total - sum(map(len, missing(priority).values()))
        lines.append(f"| {priority} | {total} | {here} | {100 * here / total:.1f} % |")
    lines += [
        "",
        "## By namespace",
        "",
        "| namespace | priority 1 | priority 2 | priority 3 | ops with a spec |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for space, rows in names().items():
        cells = []
        for priority in (1, 2, 3):
            those = [name for p, _, name in rows if p == priority]
            cells.append(f"{sum(present(space, n) for n in those)} / {len(those)}" if those else "")
        ops = [n for p, kind, n in rows if p < 3 and kind in ("function", "method", "other") and present(space, n)]
        spec = sum(specced(space, n) for n in ops)
        lines.append(f"| {space} | {' | '.join(cells)} | {f'{spec} / {len(ops)}' if spec else ''} |")
    for priority in (1, 2):
        lines += ["", f"## Missing names of priority {priority}", ""]
        lines += [f"- {space}: {_code(several)}" for space, several in missing(priority).items()] or ["Nothing."]
    lines += ["", "## Missing names of priority 3", "", *_of_priority_3()]
    lines += ["", "## Specs that compare less", "", *narrower()]
    lines += ["", "## Ops with a spec", ""]
    by_space = collections.defaultdict(list)
    for name in sorted(SPECS):
        by_space[name.rpartition(".")[0] or "sbpjax"].append(name.rpartition(".")[2])
    lines += [f"- {space}: {_code(several)}" for space, several in by_space.items()]
    return "\n".join(lines) + "\n"


def narrower() -> list[str]:
    """Return a line for every reason for which something of an op is not compared, or is at a tolerance of its own."""
    groups = collections.defaultdict(list)
    for spec in SPECS.values():
        off = [part for part in ("grad", "layouts", "traced") if not getattr(spec, part)] if spec.check is None else []
        off += ["tolerance"] if spec.tol else []
        if spec.reason and off and not spec.alias_of:
            groups[f"{', '.join(off)}: {spec.reason}"].append(spec.name)
    lines = [f"- {cause}: {_code(sorted(several))}" for cause, several in sorted(groups.items())]
    return [*lines, *[f"- {e.form}, {_code(e.names.split())}: {e.reason}" for e in EXCUSES.values()]]


def _of_priority_3() -> list[str]:
    """Return the lines about names without a meaning here, which raise `AbsentError` with the same replacements."""
    lines = [
        "These are internals of OneFlow's package. Access to one of them raises `AbsentError` with a replacement",
        "(`sbpjax/_core/functions/table/absent_names.py`).",
        "",
        "| names | replacement |",
        "| --- | --- |",
    ]
    lacking = [
        (f"{space}.{name}".removeprefix("oneflow."), kind)
        for space, rows in names().items()
        for p, kind, name in rows
        if p == 3 and not present(space, name)
    ]
    counts = collections.Counter(row(name) for name, _ in lacking)
    for entry in TABLE:
        if counts[entry]:
            lines.append(f"| {_code(entry[0].split())} ({counts[entry]}) | {entry[1]} |")
    rest = [name for name, kind in lacking if row(name) is None and kind != "internal"]
    leaked = sum(row(name) is None and kind == "internal" for name, kind in lacking)
    lines += ["", f"Beside these, {leaked} imports that leak, modules that are no API, and dunders; and:", ""]
    return [*lines, _code(rest) or "nothing."]


def _code(several) -> str:
    return " ".join(f"`{name}`" for name in several)


if __name__ == "__main__":
    if "--print" in sys.argv:
        for wanted in (1, 2):
            for space, several in missing(wanted).items():
                print(wanted, space, *several)
    else:
        PAGE.write_text(page())
