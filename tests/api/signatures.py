"""What of OneFlow's recorded signatures (`signatures.json`) the package here does not take.

    python -m tests.api.signatures    # a line for each

A signature is taken if three calls are understood: with all its arguments in their order, with all of them by name, and
with those alone that may not be left out; and if the arguments in order mean the same here. What is meant by a value is
tested elsewhere.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import warnings

from sbpjax._core.tensor.calls.argument_names import parse_form
from tests.api.coverage import HERE, resolve

# A function that takes any keyword is asked: it refuses what it does not know in one of these words.
REFUSED = r"unexpected keyword|takes .*positional arg|multiple values|unknown arg|each once|is required|missing .* requ"
# Recorded forms that are not taken, with the reason.
EXCEPTIONS = {
    "the order of positional arguments is PyTorch's": """allclose isclose Tensor.allclose Tensor.isclose
 nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d nn.functional.gumbel_softmax
 optim.lr_scheduler.PolynomialLR profiler.profile""",
    "overloads, selected by the number or type of the arguments": """max min pow randint randint_like
 transpose unique Tensor.max Tensor.min Tensor.unique Tensor.where _C.global_arange _C.transpose""",
    "a reduction string may take the position of PyTorch's old flags": """nn.BCELoss
 nn.MarginRankingLoss nn.functional.binary_cross_entropy nn.functional.l1_loss nn.functional.mse_loss""",
    "only graphs create these objects": "nn.graph.GraphModule nn.graph.GraphTensor",
    "a layer in OneFlow, a function in PyTorch and sbpjax": "nn.functional.upsample",
    "OneFlow's does not depend on its first argument": "linalg.diagonal",
    "OneFlow has an argument that no call can pass": "sbp.split",
    "OneFlow's is also a decorator, which nobody uses": "utils.checkpoint.checkpoint",
    "the user defines it": "nn.Module.forward",
}
LEFT_OUT = {name: reason for reason, names in EXCEPTIONS.items() for name in names.split()}


@functools.cache
def recorded() -> dict[str, list[str]]:
    """Return the recorded signatures by the name here."""
    found = json.loads((HERE / "signatures.json").read_text())
    return {path.removeprefix("oneflow").removeprefix("."): several for path, several in found.items()}


def parameters(text: str) -> tuple[list[str], list[str], set[str]]:
    """Return the parameters that come in order, those given by name alone, and those that may be left out."""
    ordered, by_name, optional = [], [], set()
    into = ordered
    for part in filter(None, text.split(", ")):
        name, _, _ = part.partition(":")
        if part.startswith("*"):
            into = by_name
            continue
        into.append(name.rstrip("?"))
        if name.endswith("?"):
            optional.add(name.rstrip("?"))
    return ordered, by_name, optional


def lacking(path: str, text: str) -> list[str]:
    """Return what calls of the signature's form fail with here; nothing if it is taken."""
    here = resolve(path)
    if isinstance(here, type) and (not text or "**" in text):
        return []  # a class that tells nothing
    ordered, by_name, optional = parameters(text)
    first = (
        1
        if path.startswith("Tensor.")
        or ordered[:1] == ["self"]
        or re.fullmatch(r"arg\d", ordered[0] if ordered else "")
        else 0
    )
    named = ordered[first:] + by_name
    needed = [name for name in named if name not in optional]
    found = [
        _refused(here, ordered, [name for name in by_name if name not in optional]),
        _refused(here, ordered[:first], named),
        _refused(here, ordered[:first], needed),
    ]
    found.append(_elsewhere(path, here, ordered))
    return [one for one in found if one]


def _elsewhere(path: str, here, ordered: list[str]) -> str:
    """Return which argument in order would mean another one here."""
    function = here.__init__ if isinstance(here, type) else here
    form, also = getattr(function, "oneflow", ""), getattr(function, "takes", {})
    if len(parse_form(form.partition("*")[0])) >= len(ordered):
        return ""
    try:
        parameters = inspect.signature(here).parameters.values()
    except (TypeError, ValueError):
        return ""
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    for there, mine in list(zip(ordered, names))[1:]:
        if also.get(there, there) != mine:
            return f"{there} stands where {mine} stands here"
    return ""


def _refused(here, ordered: list[str], by_name: list[str]) -> str:
    values, options = [object() for _ in ordered], {name: object() for name in by_name}
    try:
        signature = inspect.signature(here)
        signature.bind(*values, **options)
        if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            return ""
    except (TypeError, ValueError) as error:
        if isinstance(here, type):
            call = f"{here.__name__}({', '.join([*ordered, *[f'{name}=' for name in by_name]])})"
            return "" if _taken_by_init(here, values, options) else f"{call}: {error}"
    if isinstance(here, type):
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here(*values, **options)
    except Exception as error:  # of any kind: the values are no values
        text = " ".join(str(error).split())
        return text[:200] if re.search(REFUSED, text) else ""
    return ""


def _taken_by_init(cls: type, values: list, options: dict) -> bool:
    try:
        cls(*values, **options)
    except TypeError as error:
        return not re.search(REFUSED, str(error))
    except Exception:  # the values are no values
        return True
    return True


def all_lacking() -> dict[str, list[str]]:
    """Return what is not taken, by name."""
    found = {}
    for path, several in recorded().items():
        of_one = [] if path in LEFT_OUT else [one for text in several for one in lacking(path, text)]
        if of_one:
            found[path] = list(dict.fromkeys(of_one))
    return found


if __name__ == "__main__":
    for name, reasons in all_lacking().items():
        print(name, *reasons, sep="\n    ")
