"""Tree document of a checkpoint: its structure without the arrays, as JSON that holds no code.

    state = {"step": 300, "model": {"weight": <float32[4, 3] as S0>}}

becomes ``{"step": 300, "model": {"weight": {"": "tensor", "name": "model/weight"}}}`` and a table of tensors with name,
logical shape, dtype, sbp and placement of each. Dicts with string keys, lists and plain values are themselves;
everything else is a dict whose key ``""`` holds its kind (`codec`).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

import numpy as np

from sbpjax._core.tensor.calls.op_errors import check_leaked
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import CheckpointError

from . import codec

VERSION = 2
LEAVES = ("tensor", "array")


def pack(state: Any) -> tuple[Any, dict[str, Any]]:
    """Return the structure of a state, and its tensors and arrays by name (``model/weight``).

    Objects with ``state_dict()`` and ``load_state_dict()`` are saved by their state.

    Raises:
        CheckpointError: a value is of a class that is not stored; the text names it.
        OpError: a tensor is of a trace of JAX that is over.
    """
    found: dict[str, Any] = {}
    try:
        return _pack(state, "", found), found
    except RecursionError:
        rule = "a state is a tree: nothing in it holds itself"
        fix = "leave out references back to the owner"
        raise CheckpointError("saving a checkpoint", "a state without an end", rule, fix) from None


def is_object(value: Any) -> bool:
    """Return whether a value is saved by its state: a module, an optimizer, a schedule, a scaler, a loader."""
    return (
        hasattr(type(value), "state_dict")
        and hasattr(type(value), "load_state_dict")
        and not isinstance(value, (dict, list, tuple, Tensor))
    )


def _pack(value: Any, name: str, found: dict[str, Any]) -> Any:
    kind = type(value)
    if kind in codec.PLAIN:
        return value
    if isinstance(value, (Tensor, np.ndarray)):
        leaf = "tensor" if isinstance(value, Tensor) else "array"
        if leaf == "array":
            codec.dtype_name(value.dtype)  # it raises for arrays of objects
        else:
            check_leaked(value)
        name = _free(name, found)
        found[name] = value
        return {"": leaf, "name": name}
    if kind is dict and all(type(k) is str and k for k in value):
        return {k: _pack(v, join_name(name, k), found) for k, v in value.items()}
    if kind is list:
        return [_pack(v, join_name(name, i), found) for i, v in enumerate(value)]
    if isinstance(value, dict) and (kind is dict or kind in codec.ENCODERS):
        items = [[_pack(k, name, found), _pack(v, join_name(name, k), found)] for k, v in value.items()]
        if kind is dict:
            return {"": "dict", "items": items}
        return codec.encode(value, lambda _: None, name) | {"items": items}  # type: ignore[operator]
    numbers = iter(range(1 << 62))
    code = codec.encode(value, lambda part: _pack(part, join_name(name, next(numbers)), found), name)
    if code is not None:
        return code
    if is_object(value):
        return _pack(value.state_dict(), name, found)
    raise CheckpointError(
        "saving a checkpoint",
        f"{name or 'the state'} is a {kind.__name__}"
        + ("" if kind.__module__ == "builtins" else f" of {kind.__module__}"),
        "a checkpoint holds tensors, arrays, containers and values of classes that it knows; nothing is pickled",
        "store its state as one of these, e.g. object.state_dict(), dict(value) or vars(value)",
    )


def join_name(name: str, key: Any) -> str:
    """Return the name of an entry under a key or index of ``name``."""
    return f"{name}/{key}" if name else str(key)


def _free(name: str, found: dict[str, Any]) -> str:
    """Return a name that nothing else has: the keys 1 and "1" of one dict give the same one."""
    number, free = 1, name
    while free in found:
        number += 1
        free = f"{name}#{number}"
    return free


def unpack(document: Any, make: Callable[[str], Any]) -> Any:
    """Return the state of a structure; ``make(name)`` gives its tensors and arrays, `MISSING` leaves one out."""
    if isinstance(document, list):
        return _drop_missing([unpack(item, make) for item in document])
    if not isinstance(document, dict):
        return document
    kind = document.get("")
    if kind is None:
        return {k: v for k, item in document.items() if (v := unpack(item, make)) is not MISSING}
    if kind in LEAVES:
        return make(document["name"])
    if kind == "tuple":
        return tuple(_drop_missing([unpack(item, make) for item in document["items"]]))
    if isinstance(document.get("items"), list) and kind in ("dict", "OrderedDict", "defaultdict"):
        pairs = [(unpack(k, make), k, item) for k, item in document["items"]]
        made = [(key, unpack(item, make)) for key, _, item in pairs]
        shell = codec.decode(document | {"items": []}, lambda part: part)
        shell.update((k, v) for k, v in made if v is not MISSING)
        return shell
    return codec.decode(document, lambda part: None if (v := unpack(part, make)) is MISSING else v)


def _drop_missing(values: list) -> list:
    return [v for v in values if v is not MISSING]


MISSING: Any = object()


def names_of(document: Any) -> list[str]:
    """Return the names of the tensors and arrays in a structure, in order."""
    if isinstance(document, list):
        return [n for item in document for n in names_of(item)]
    if not isinstance(document, dict):
        return []
    if document.get("") in LEAVES:
        return [document["name"]]
    return [n for item in document.values() for n in names_of(item)]


def select_names(names, patterns) -> list[str]:
    """Return the names that match a pattern (``model/*.weight``), in order; all without patterns.

    Raises:
        CheckpointError: a pattern matches nothing.
    """
    names = list(names)
    if patterns is None:
        return names
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise CheckpointError(
                f"loading {pattern!r}",
                f"{len(names)} tensors: {', '.join(names[:6])}{' …' if len(names) > 6 else ''}",
                "a pattern matches at least one name",
                "sbpjax.checkpoint.inspect(path) lists the names",
            )
    return [n for n in names if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
