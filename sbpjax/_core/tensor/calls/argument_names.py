"""Argument names of PyTorch, NumPy and OneFlow: aliases such as ``axis``, and OneFlow's order of arguments.

    x.sum(axis=1, keepdims=True)    # x.sum(dim=1, keepdim=True)
    zeros(size=(2, 3))              # zeros(2, 3)
    relu(x=t)                       # relu(input=t), OneFlow's name
    bmm(a=s, b=t)                   # bmm(s, t)
    tensor([1.0], pin_memory=True)  # tensor([1.0])

Functions here have PyTorch's signatures; OneFlow's have other names for some arguments, take some in order that
PyTorch takes by name alone, and have a few of their own. The forms of ops are in the table of ops (`oneflow=`), those
of classes and the rest in `FORMS`; `_core.functions.table.public` applies them where names are made public.

A form lists arguments in OneFlow's order: ``there=here`` has another name there, ``name!`` is accepted and ignored
(reasons in `IGNORED`; list in `docs/reference/compatibility.md`), and after ``*`` are those given by name alone.
After the common prefix of both orders, positional arguments follow OneFlow's order, unless the form begins
with ``flags``: then they are PyTorch's `size_average` and `reduce`, if all of them are bools or None.
`tests/api` compares this with the calls that OneFlow 0.9 accepts.
"""

from __future__ import annotations

import inspect
from typing import Any

NUMPY = {"axis": "dim", "keepdims": "keepdim"}
REST = "*"
# The target of an argument that is accepted and ignored.
NOTHING = ""

# package: {form: functions}
FORMS: dict[str, dict[str, str]] = {
    "nn.": {
        "flags self reduction beta": "SmoothL1Loss",
        "flags self weight reduction pos_weight": "BCEWithLogitsLoss",
        "flags self weight ignore_index reduction": "NLLLoss",
        "flags self weight ignore_index reduction label_smoothing": "CrossEntropyLoss",
        "flags self reduction log_target": "KLDivLoss",
    },
    "comm.": {"input=tensor": "send"},
    "optim.": {"self parameters=params options=defaults": "Optimizer"},
}

IGNORED = {
    "pin_memory": "XLA stages copies to an accelerator itself",
    "layout": "all tensors are dense",
    "memory_format": "there is one memory format; XLA chooses the layout in memory",
    "use_l2_norm_kernel": "there is one way to compute a norm",
}


def parse_form(form: str) -> list[tuple[str, str]]:
    """Return ``(name there, name here)`` for the arguments of a form; `NOTHING` if it is ignored here."""
    found = []
    for part in form.removeprefix("flags ").replace("*", "").split():
        there, _, here = part.partition("=")
        found.append((there[:-1], NOTHING) if there.endswith("!") else (there, here or there))
    return found


def are_flags(values: tuple) -> bool:
    """Return whether arguments in order can be PyTorch's `size_average` and `reduce`."""
    return all(value is None or value is True or value is False for value in values)


def oneflow_parameter_order(form: str, parameters: list[inspect.Parameter]) -> tuple[list[str], int]:
    """Return the arguments that a function takes in OneFlow's order, and how many of them are in its own order.

    Args:
        form: the form; no arguments are returned unless it has more than the function's own order.
        parameters: the parameters of the function.
    """
    order = [here for _, here in parse_form(form.partition("*")[0])]
    own = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    if order and order[0] in ("self", "input"):
        order[0] = own[0]
    same = next((i for i, (a, b) in enumerate(zip(order, own)) if a != b), min(len(order), len(own)))
    return (order, same) if len(order) > same else ([], same)


def rename_arguments(
    first: str, names: dict[str, str], args: tuple, options: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments of a call under a function's own names."""
    rest: tuple = ()
    found = {}
    for name, value in options.items():
        target = names.get(name, name)
        if target == REST:
            rest = (value,)
        elif target != NOTHING:
            found[target] = value
    # A parameter given by name would come after the rest, which is positional.
    if rest and first in found:
        args = (found.pop(first), *args)
    return (*args, *rest), found
