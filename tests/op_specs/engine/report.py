"""A failing case, made small and written as a script that anyone can run.

Shrinking replays the case with fewer and smaller choices (`generate.Gen`) as long as it still fails in the same form.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.support.generate import Call, Dtype, Input
from tests.support.layouts import MESHES

from .cases import draw
from .compare import Different
from .spec import Spec

_TRIES = 60


@dataclasses.dataclass
class Failure:
    """One case that failed."""

    spec: Spec
    form: str
    seed: list
    call: Call
    error: Different
    options: dict

    def __str__(self) -> str:
        return (
            f"{self.spec.name} ({self.form}): {self.error}\n\n{script(self.spec, self.form, self.call, self.options)}"
        )


def shrink(spec: Spec, form: str, seed, choices: list[int], fails) -> tuple[Call, Different] | None:
    """Return the simplest call found that still fails, and its error.

    Args:
        spec: the spec.
        form: the form that fails.
        seed: the case's seed.
        choices: what the case was drawn from.
        fails: returns the error of a call, or None.
    """
    best, found, tries = list(choices), None, 0
    at = 0
    while at < len(best) and tries < _TRIES:
        for smaller in sorted({0, best[at] // 2, best[at] - 1}):
            if not 0 <= smaller < best[at]:
                continue
            tries += 1
            drawn = draw(spec, form, seed, [*best[:at], smaller, *best[at + 1 :]])
            error = fails(drawn[1]) if drawn else None
            if error is not None:
                best, found, at = drawn[0].choices, (drawn[1], error), -1  # from the start again
                break
        at += 1
    return found


def script(spec: Spec, form: str, call: Call, options: dict) -> str:
    """Return a program that shows a case: the same lines with PyTorch and with sbpjax, or on one device and on many."""
    lines = ["import numpy as np", "import sbpjax", "", "", "def case(T, put=lambda x: x):"]
    names = {}
    for i, x in enumerate(call.inputs()):
        names[id(x)] = f"x{i}"
        lines.append(
            f"    b{i} = put({_literal(x.base)})" + (".requires_grad_()" if x.differentiable and spec.grad else "")
        )
        lines.append(f"    x{i} = b{i}{x.suffix}")
    arguments = [_text(a, names) for a in call.args] + [f"{k}={_text(v, names)}" for k, v in call.kwargs.items()]
    name = f"T.{spec.name}"
    if form in ("method", "inplace") and arguments:
        name, arguments = f"{arguments[0]}.{spec.last}{'_' if form == 'inplace' else ''}", arguments[1:]
        if form == "inplace":
            lines += ["    b0 = b0.clone()", f"    x0 = b0{call.inputs()[0].suffix}"]
    lines += [f"    return {name}({', '.join(arguments)})", "", ""]
    if form in ("layouts", "traced_layouts"):
        lines += [
            f'where = sbpjax.placement("cpu", {MESHES[options.get("mesh", "2x2")]})',
            f"sbps = iter({options.get('sbps', [])!r})  # one per tensor, as the message says",
            "print(case(sbpjax))",
            "print(case(sbpjax, lambda x: x.to_global(where, next(sbps))))",
        ]
    elif form == "traced":
        lines += ["print(case(sbpjax))", "print(sbpjax.compile(lambda: case(sbpjax))())"]
    elif spec.reference is not None:
        lines += ["print(case(sbpjax))"]
    else:
        lines += ["import torch", "", "print(case(torch))", "print(case(sbpjax))"]
    return "\n".join(lines)


def _literal(array: np.ndarray) -> str:
    name = array.dtype.name
    if array.size > 256:
        return f"T.tensor(np.random.default_rng(0).normal(size={array.shape}), dtype=T.{name})"
    values = array.tolist() if array.dtype.kind != "V" else array.astype(np.float32).tolist()
    text = str(values).replace("nan", "np.nan").replace("inf", "np.inf")
    shape = "" if array.size else f".reshape({array.shape})"
    return f"T.tensor({text}, dtype=T.{name}){shape}"


def _text(value, names: dict) -> str:
    if isinstance(value, Input):
        return names[id(value)]
    if isinstance(value, Dtype):
        return f"T.{value.name}"
    if isinstance(value, tuple):
        return f"({', '.join(_text(v, names) for v in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(_text(v, names) for v in value)}]"
    return repr(value)
