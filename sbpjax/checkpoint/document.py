"""What a checkpoint holds besides arrays: its structure, as JSON that holds no code.

    state = {"step": 300, "model": {"weight": <float32[4, 3] as S0>}}

becomes ``{"step": 300, "model": {"weight": {"": "tensor", "index": 0}}}`` and a table of tensors with name, logical
shape, dtype, sbp and placement of each. The arrays themselves are Orbax's.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import Any

import numpy as np

from sbpjax.errors import CheckpointError, message
from sbpjax.tensor.tensor import Tensor

VERSION = 1
_PLAIN = (str, int, float, bool, type(None))


def pack(state: Any) -> tuple[Any, dict[str, Any]]:
    """Return the structure of a state, and its tensors and arrays by name (``model/weight``).

    Raises:
        CheckpointError: something in it is neither container, tensor, array nor plain value.
    """
    found: dict[str, Any] = {}
    return _pack(state, "", found), found


def _pack(value: Any, name: str, found: dict[str, Any]) -> Any:
    if isinstance(value, (Tensor, np.ndarray)):
        found[name] = value
        kind = "tensor" if isinstance(value, Tensor) else "array"
        return {"": kind, "name": name}
    if isinstance(value, dict) and all(isinstance(k, (str, int)) and not isinstance(k, bool) for k in value):
        items = [[k, _pack(v, _below(name, k), found)] for k, v in value.items()]
        if all(isinstance(k, str) and k for k in value):
            return dict(items)
        return {"": "dict", "items": items}
    if isinstance(value, (list, tuple)):
        items = [_pack(v, _below(name, i), found) for i, v in enumerate(value)]
        return items if isinstance(value, list) else {"": "tuple", "items": items}
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.generic):
        return value.item()
    raise CheckpointError(
        message(
            "saving a checkpoint",
            f"{name or 'the state'} is a {type(value).__name__}",
            "a checkpoint holds dicts with string or integer keys, lists, tuples, tensors, arrays and plain values",
            "store its state as one of these, e.g. object.state_dict()",
        )
    )


def _below(name: str, key) -> str:
    return f"{name}/{key}" if name else str(key)


def unpack(document: Any, make: Callable[[str], Any]) -> Any:
    """Return the state of a structure; ``make(name)`` gives its tensors and arrays, `MISSING` leaves one out."""
    if isinstance(document, list):
        return [v for v in (unpack(item, make) for item in document) if v is not MISSING]
    if not isinstance(document, dict):
        return document
    kind = document.get("")
    if kind in ("tensor", "array"):
        return make(document["name"])
    items = document["items"] if kind else document.items()
    if kind == "tuple":
        return tuple(v for v in (unpack(item, make) for item in items) if v is not MISSING)
    made = {k: unpack(v, make) for k, v in items}
    return {k: v for k, v in made.items() if v is not MISSING}


MISSING: Any = object()


def chosen(names, patterns) -> list[str]:
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
                message(
                    f"loading {pattern!r}",
                    f"{len(names)} tensors: {', '.join(names[:6])}{' …' if len(names) > 6 else ''}",
                    "a pattern matches at least one name",
                    "sbpjax.checkpoint.inspect(path) lists the names",
                )
            )
    return [n for n in names if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
