"""Signatures: the key of one compiled program, and a description of the difference between two keys.

A program fits a call when everything but the values is the same: the structure of the arguments, their static leaves,
shape, dtype, layout and `requires_grad` of tensors, the same facts of the state, the plain attributes of the modules
(`training` among them), the options of optimizers and graph.

    x: float32[8, 4] → float32[16, 4]
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.abstract import empty
from sbpjax._core.tensor.handle import dtype as _dtypes
from sbpjax.sbp import Layout
from sbpjax.sbp import algebra as _algebra

from . import tree
from .capture import State, info


class TensorSpec:
    """A tensor without data, for `Graph.compile`.

    Args:
        shape: the logical shape.
        dtype: the dtype; float32 by default.
        placement: the placement of a global tensor; None for a local one.
        sbp: its nd-sbp.
        requires_grad: whether it requires grad.

    Example:
        >>> graph.compile(TensorSpec((8, 128), flow.int64, placement=p, sbp=flow.sbp.split(0)))
    """

    def __init__(self, shape: Sequence[int], dtype=None, *, placement=None, sbp=None, requires_grad: bool = False):
        self.shape = tuple(shape)
        self.dtype = _dtypes.float32 if dtype is None else dtype
        self.placement = placement
        self._codes = None if placement is None else _algebra.parse(sbp, placement, len(self.shape))
        self.requires_grad = requires_grad

    @property
    def sbp(self):
        """The nd-sbp, None for a local tensor."""
        return None if self._codes is None else _algebra.to_sbp(self._codes)

    def tensor(self) -> Tensor:
        """Return a tensor of these facts whose payload has no data."""
        np_dtype = np.dtype(self.dtype.np if isinstance(self.dtype, _dtypes.dtype) else self.dtype)
        made = empty(self.shape, np_dtype, self.placement, self.sbp)
        return made.requires_grad_() if self.requires_grad else made

    def __repr__(self) -> str:
        where = ""
        if self._codes is not None:
            where = f", placement={self.placement!r}, sbp={_algebra.nd_name(self._codes)}"
        return f"TensorSpec({list(self.shape)}, {self.dtype!r}{where})"


def as_tensor(leaf: Any) -> Any:
    """Return a leaf of abstract arguments as a tensor without data; tensors and static leaves stay."""
    if isinstance(leaf, TensorSpec):
        return leaf.tensor()
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return TensorSpec(leaf.shape, leaf.dtype).tensor()
    return leaf


@functools.cache
def _flat_structure(count: int) -> Any:
    return tree.flatten(((0,) * count, {}))[1]


class Call:
    """The arguments of one call, taken apart.

    Attributes:
        leaves: all leaves in order.
        structure: the structure of ``(args, kwargs)``.
        places: which leaves are tensors.
        tensors: those.
    """

    __slots__ = ("leaves", "places", "structure", "tensors")

    def __init__(self, args: tuple, kwargs: dict) -> None:
        if not kwargs:  # the common call, without a walk
            for x in args:
                if not isinstance(x, Tensor):
                    break
            else:
                self.leaves = self.tensors = list(args)
                self.places = range(len(args))
                self.structure = _flat_structure(len(args))
                return
        self.leaves, self.structure = tree.flatten((args, kwargs))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]
        self.tensors = [self.leaves[i] for i in self.places]

    @property
    def is_flat(self) -> bool:
        """Whether the arguments are tensors, given by their places."""
        return self.structure is _flat_structure(len(self.leaves))

    def static(self) -> list:
        """Return the keys of the leaves that are no tensors."""
        if len(self.places) == len(self.leaves):
            return []
        held = set(self.places)
        return [tree.static_key(leaf) for i, leaf in enumerate(self.leaves) if i not in held]

    def rebuilt(self, tensors) -> tuple[tuple, dict]:
        """Return the arguments with other tensors in their places."""
        leaves = list(self.leaves)
        for i, tensor in zip(self.places, tensors, strict=True):
            leaves[i] = tensor
        return tree.unflatten(self.structure, leaves)

    def paths(self, fn: Callable) -> list[str]:
        """Return for every leaf its path, named by the parameters of a function."""
        return argument_paths(self.structure, fn)


def argument_paths(structure: Any, fn: Callable) -> list[str]:
    """Return for every leaf of ``(args, kwargs)`` its path, named by the parameters of a function."""
    args, kwargs = structure.children
    names = _names(fn, len(args.children), kwargs.keys)
    found: list[str] = []
    for name, child in zip(names, (*args.children, *kwargs.children), strict=True):
        found += tree.paths(child, name)
    return found


def _names(fn: Callable, count: int, keywords) -> list[str]:
    names: list[str] = []
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names += [f"argument {i}" for i in range(len(names), count)]
    return [*names[:count], *keywords]


class Signature(NamedTuple):
    """The key of one compiled program.

    Attributes:
        structure: the structure of the arguments.
        static: the keys of the static leaves.
        tensors: facts of the tensors among the arguments.
        state: facts of the state tensors, each with its name.
        modes: the plain attributes of the modules, each with its name.
        fixed: options of the optimizers.
        options: options of the graph.
    """

    structure: Any
    static: tuple
    tensors: tuple
    state: tuple
    modes: tuple
    fixed: tuple
    options: Any


def signature_of(call: Call, state: State, fn: Callable, options: Any) -> Signature:
    """Return the key of the program for a call."""
    held = set(call.places)
    static = []
    if len(held) < len(call.leaves):
        paths = call.paths(fn)
        static = [tree.static_key(leaf, paths[i]) for i, leaf in enumerate(call.leaves) if i not in held]
    tensors, modes, fixed = state.signature()
    arguments = tuple([info(t) for t in call.tensors])
    return Signature(call.structure, tuple(static), arguments, tensors, modes, fixed, options)


def difference(old: Signature, new: Signature, paths: list[str], places: Sequence[int]) -> str:
    """Describe the difference between the signature of the last program and that of a new call.

    Args:
        old: the signature before.
        new: that of the call.
        paths: the path of every leaf of the call.
        places: which leaves are tensors.
    """
    if old.structure != new.structure:
        return f"the structure of the arguments; now {', '.join(paths) or 'none'}"
    found: list[str] = []
    held = set(places)
    static_paths = [path for i, path in enumerate(paths) if i not in held]
    for path, before, after in zip(static_paths, old.static, new.static, strict=True):
        if before != after:
            found.append(f"{path}: {_value(before)} → {_value(after)}")
    for place, before, after in zip(places, old.tensors, new.tensors, strict=True):
        if before != after:
            found.append(f"{paths[place]}: {describe(before, after)} → {describe(after, before)}")
    found += _name_changes(old.state, new.state, describe)
    found += _name_changes(old.modes, new.modes, _attributes)
    if old.fixed != new.fixed:
        found.append("the options of an optimizer")
    if old.options != new.options:
        found.append("graph.config or activation checkpointing")
    more = len(found) - 3
    return "; ".join(found[:3]) + (f"; and {more} more" if more > 0 else "")


def _name_changes(old: tuple, new: tuple, text: Callable) -> list[str]:
    before, after = dict(old), dict(new)
    found = []
    for name, value in after.items():
        if name not in before:
            found.append(f"{name} is new")
        elif before[name] != value:
            found.append(f"{name or 'the module'}: {text(before[name], value)} → {text(value, before[name])}")
    return found + [f"{name} is gone" for name in before if name not in after]


def _value(key: tuple) -> str:
    if key[0] is float:
        return repr(float.fromhex(key[1]))
    if key[0] is np.ndarray:
        return f"array {key[1]}{list(key[2])}"
    return repr(key[-1])


def _attributes(value: tuple, other: tuple) -> str:
    names = {name: (cls, v) for name, cls, v in other}
    return ", ".join(f"{name}={v!r}" for name, cls, v in value if names.get(name) != (cls, v)) or "less"


def describe(value: tuple, other: tuple | None = None) -> str:
    """Return the text of one tensor's facts: dtype and shape, and its place if that differs from another's."""
    shape, dtype, where, requires_grad = value
    text = f"{dtype.name}{list(shape)}"
    if other is None or other[2] is not where:
        if isinstance(where, Layout):
            text += f" {_algebra.nd_name(where.codes)} on {where.placement!r}"
        elif other is not None and isinstance(other[2], Layout):
            text += " local"
        elif other is not None and other[2] != where:
            text += f" on {where}"
    if other is not None and other[3] != requires_grad:
        text += f" requires_grad={requires_grad}"
    return text
