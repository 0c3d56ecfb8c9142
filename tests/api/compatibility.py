"""Write `docs/reference/compatibility.md`: OneFlow's arguments and their names here, from the tables of arguments.

python -m tests.api.compatibility
"""

from __future__ import annotations

import collections
import inspect

from sbpjax._core.functions.table.table import ROWS
from sbpjax._core.tensor.calls.argument_names import FORMS, IGNORED, NOTHING, REST, parse_form
from tests.api import signatures
from tests.api.coverage import HERE, resolve

PAGE = HERE.parent.parent / "docs" / "reference" / "compatibility.md"
START, END = "<!-- arguments -->", "<!-- end of arguments -->"
# Parameters that functions here have and do nothing with, by the reason.
WITHOUT_EFFECT = {
    "memory_format": IGNORED["memory_format"],
    "non_blocking": "transfers never block",
    "foreach": "all tensors are always updated at once",
    "fused": "all tensors are always updated at once",
    "capturable": "every step is a compiled program",
    "differentiable": "steps are not on the tape",
    "sparse_grad": "gradients are dense",
    "_stacklevel": "it belongs to PyTorch's warnings",
    "warn_on_non_tensor_leaf": "other leaves are never changed",
}


def taken() -> list[tuple[str, str, str]]:
    """Return ``(function, name there, name here)`` for the arguments that have another name, or none, here."""
    found = [
        (f"{namespace}{name}", there, here)
        for namespace, forms in FORMS.items()
        for form, names in forms.items()
        for name in names.split()
        for there, here in parse_form(form)
    ]
    for row in ROWS:
        found += [(row.path, there, here) for there, here in [*parse_form(row.oneflow), *row.names.items()]]
    return [(path, there, here) for path, there, here in found if here not in (there, REST)]


def ignored() -> list[tuple[str, str]]:
    """Return ``(function, argument)`` for the arguments that are taken and ignored."""
    return [(path, there) for path, there, here in taken() if here == NOTHING]


def section() -> str:
    """Return the part of the page that the tables make."""
    lines = ["### Accepted and ignored", "", "| argument | functions | reason |", "| --- | --- | --- |"]
    of = collections.defaultdict(list)
    for path, name in ignored():
        of[name].append(path)
    for path in signatures.recorded():
        for name in _parameters(path) & WITHOUT_EFFECT.keys():
            of[name].append(path)
    for name, paths in sorted(of.items()):
        shown = _code(sorted(set(paths)))
        lines.append(f"| `{name}` | {shown} | {({**IGNORED, **WITHOUT_EFFECT})[name]} |")
    lines += ["", "### Different names", "", "Every function accepts `x` as the name of a first argument `input`.", ""]
    lines += ["| OneFlow | sbpjax | functions |", "| --- | --- | --- |"]
    renamed = collections.defaultdict(list)
    for path, there, here in taken():
        if here != NOTHING:
            renamed[there, here].append(path)
    for (there, here), names in sorted(renamed.items()):
        lines.append(f"| `{there}` | `{here}` | {_code(sorted(set(names)))} |")
    lines += ["", "### OneFlow's call forms that are not supported", "", "| functions | reason |", "| --- | --- |"]
    lines += [f"| {_code(names.split())} | {reason} |" for reason, names in signatures.EXCEPTIONS.items()]
    return "\n".join(lines)


def _parameters(path: str) -> set[str]:
    try:
        return set(inspect.signature(resolve(path)).parameters)
    except (TypeError, ValueError):
        return set()


def _code(names) -> str:
    return " ".join(f"`{name}`" for name in names)


def page() -> str:
    """Return the page with that part as it is now."""
    before, rest = PAGE.read_text().split(START)
    return f"{before}{START}\n\n{section()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page())
