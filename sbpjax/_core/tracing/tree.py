"""Trees: nested inputs and outputs as a flat list of leaves and a hashable structure, and back.

    leaves, structure = flatten({"ids": x, "sizes": [3, None]})     # [x, 3, None]
    unflatten(structure, leaves)                                    # {"ids": x, "sizes": [3, None]}
    tensors, skeleton = split_tensors({"ids": x, "sizes": [3, None]})       # [x], and the rest
    skeleton.fill_places([y])                                            # {"ids": y, "sizes": [3, None]}
    paths(structure, "batch")                                       # ["batch['ids']", "batch['sizes'][0]", …]

Containers are lists, tuples, dicts and their subclasses, named tuples, and dataclasses that hold a tensor somewhere;
dicts keep their order and types come back as they were. Everything else is a leaf: tensors, None, numbers, strings,
objects. Leaves that are no tensors are static: `static_key` defines their equality.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax.errors import GraphTypeError

LEAF = None  # the structure of a leaf


class Node(NamedTuple):
    """The structure of one container.

    Attributes:
        kind: its type.
        keys: of a dict its keys, of a dataclass its fields, of a default dict also its default factory; else None.
        children: the structures of its values.
    """

    kind: type
    keys: Any
    children: tuple


def flatten(value: Any) -> tuple[list, Any]:
    """Return the leaves of a nested value in order, and its structure."""
    leaves: list = []
    return leaves, _flatten(value, leaves)


def _flatten(value: Any, leaves: list) -> Any:
    if isinstance(value, Tensor) or value is None or isinstance(value, (str, int, float)):
        leaves.append(value)
        return LEAF
    found = _container_items(value)
    if found is None:
        leaves.append(value)
        return LEAF
    keys, values = found
    return Node(type(value), keys, tuple([_flatten(v, leaves) for v in values]))


def _container_items(value: Any) -> tuple | None:
    """Return the keys and the values of a container, None for a leaf."""
    if isinstance(value, (list, tuple)):
        return None, value
    if isinstance(value, defaultdict):
        return (value.default_factory, *value), value.values()
    if isinstance(value, dict):
        return tuple(value), value.values()
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _holds_tensor(value):
        names = tuple(f.name for f in dataclasses.fields(value))
        return names, [getattr(value, name) for name in names]
    return None


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, Tensor):
        return True
    if isinstance(value, (list, tuple)):
        return any(map(_holds_tensor, value))
    if isinstance(value, dict):
        return any(map(_holds_tensor, value.values()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_holds_tensor(getattr(value, f.name)) for f in dataclasses.fields(value))
    return False


def unflatten(structure: Any, leaves) -> Any:
    """Return the nested value of a structure with these leaves."""
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Any, leaves) -> Any:
    if structure is LEAF:
        return next(leaves)
    kind, keys, children = structure
    values = [_unflatten(child, leaves) for child in children]
    if kind is list:
        return values
    if kind is tuple:
        return tuple(values)
    if kind is dict or kind is OrderedDict:
        return kind(zip(keys, values, strict=True))
    if issubclass(kind, defaultdict):
        return kind(keys[0], zip(keys[1:], values, strict=True))
    if issubclass(kind, dict):
        items = dict(zip(keys, values, strict=True))
        return kind(**items) if dataclasses.is_dataclass(kind) else kind(items)  # outputs of models are both
    if issubclass(kind, tuple):
        return kind(*values) if hasattr(kind, "_fields") else kind(values)
    if issubclass(kind, list):
        return kind(values)
    made = object.__new__(kind)  # a dataclass: __init__ and __post_init__ ran when the user made it
    for name, value in zip(keys, values, strict=True):
        object.__setattr__(made, name, value)
    return made


class Skeleton(NamedTuple):
    """A nested value without its tensors.

    Attributes:
        structure: its structure.
        static: for every leaf None if it is a tensor, else the leaf in a tuple.
    """

    structure: Any
    static: list

    def fill_places(self, tensors) -> Any:
        """Return the value with these tensors, or their substitutes, in their places."""
        rest = iter(tensors)
        return unflatten(self.structure, [next(rest) if leaf is None else leaf[0] for leaf in self.static])


def split_tensors(value: Any) -> tuple[list[Tensor], Skeleton]:
    """Return the tensors of a nested value in order, and the rest of it."""
    leaves, structure = flatten(value)
    static = [None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves]
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)], Skeleton(structure, static)


def paths(structure: Any, start: str = "") -> list[str]:
    """Return for every leaf its path, as Python text that begins with `start`."""
    if structure is LEAF:
        return [start]
    kind, keys, children = structure
    found: list[str] = []
    names = _names(kind, keys, len(children))
    for name, child in zip(names, children, strict=True):
        found += paths(child, start + name)
    return found


def _names(kind: type, keys: Any, count: int) -> list[str]:
    if issubclass(kind, defaultdict):
        return [f"[{key!r}]" for key in keys[1:]]
    if issubclass(kind, dict):
        return [f"[{key!r}]" for key in keys]
    if keys is not None:
        return [f".{key}" for key in keys]
    if hasattr(kind, "_fields"):
        return [f".{name}" for name in kind._fields]
    return [f"[{i}]" for i in range(count)]


def static_key(value: Any, where: str = "an argument") -> Any:
    """Return the hashable form of a static leaf in the key of a program; equal keys mean that the same program fits.

    Numbers of different types differ, so do 0.0 and -0.0; a NumPy array counts with its content.
    """
    if value is None or value.__class__ in (bool, int, str, bytes):
        return value.__class__, value
    if value.__class__ is float:
        return float, value.hex()
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(static_key(v, where) for v in value)
    if isinstance(value, slice):
        return slice, *(static_key(v, where) for v in (value.start, value.stop, value.step))
    try:
        hash(value)
    except TypeError:
        raise GraphTypeError(
            f"a graph called with {where}",
            f"a {type(value).__name__}, which has no hash",
            "a value that is no tensor is a static argument of the program, and a static argument is hashable",
            "pass its content as numbers, strings or tensors, or jax arrays as sbpjax.from_jax(x)",
        ) from None
    return type(value), value
