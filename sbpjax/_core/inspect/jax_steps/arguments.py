"""Arguments of a step: their array leaves by name, everything else as constants, NNX objects as their state.

    step(params, opt_state, batch)   params.layers.0.w, params.layers.0.b, …, opt_state.0.mu.layers.0.w, …, batch.x
    step(model, optimizer, x)        model.layers.0.kernel, …, optimizer.opt_state.0.mu.layers.0.kernel, …, x

A leaf that is an array or a number is an input of the program, as in `jax.jit`; any other (a bool, a string, in Equinox
modules functions and numbers) is a constant of the plan. NNX objects are split, as `nnx.jit` does, and updated after a
call.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from sbpjax.errors import OpTypeError, OpValueError

_ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct)


def flatten(tree: Any) -> tuple[list, dict[int, Any], Any]:
    """Return the leaves of a tree that are arrays or numbers, the others by their position, and the structure.

    Numbers inside Equinox modules are among the others, as in `equinox.filter_jit`.
    """
    equinox = sys.modules.get("equinox")
    is_module = lambda x: equinox is not None and isinstance(x, equinox.Module)  # noqa: E731
    leaves, structure = jax.tree.flatten(tree)
    dynamic: list[bool] = []
    for part in jax.tree.leaves(tree, is_leaf=is_module):
        if is_module(part):
            dynamic += [isinstance(x, _ARRAYS) for x in jax.tree.leaves(part)]
        else:
            is_number = isinstance(part, (int, float, complex)) and not isinstance(part, bool)
            dynamic.append(is_number or isinstance(part, _ARRAYS))
    arrays = [x for x, yes in zip(leaves, dynamic, strict=True) if yes]
    return arrays, {i: x for i, (x, yes) in enumerate(zip(leaves, dynamic, strict=True)) if not yes}, structure


def unflatten(structure: Any, arrays: Iterable, constants: Mapping[int, Any]) -> Any:
    """Return a tree from its arrays, in order, and its other leaves."""
    given = iter(arrays)
    return jax.tree.unflatten(
        structure, [constants[i] if i in constants else next(given) for i in range(structure.num_leaves)]
    )


def _nnx() -> Any:
    return sys.modules.get("flax.nnx")  # Flax is slow to import; without it no argument is an NNX object


def _holds_objects(arg: Any) -> bool:
    nnx = _nnx()
    if nnx is None:
        return False
    kinds = nnx.Pytree  # modules, optimizers, metrics, random streams
    return any(isinstance(x, kinds) for x in jax.tree.leaves(arg, is_leaf=lambda x: isinstance(x, kinds)))


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call, taken apart.

    Attributes:
        arrays: the leaves that are inputs of the program.
        constants: the other leaves, by their position.
        structure: of all leaves, with the states of NNX objects in their place.
        objects: the arguments that hold NNX objects.
        definition: their structure; None without any.
    """

    arrays: list
    constants: dict[int, Any]
    structure: Any
    objects: tuple = ()
    definition: Any = None


def take_apart(args: Sequence) -> Arguments:
    """Return the arguments of a call as leaves."""
    args = list(args)
    places = [i for i, arg in enumerate(args) if _holds_objects(arg)]
    objects, definition = tuple(args[i] for i in places), None
    if places:
        definition, state = _nnx().split(objects)
        for number, i in enumerate(places):
            args[i] = _state_of(state, number)
    return Arguments(*flatten(tuple(args)), objects, definition)


def _state_of(state: Any, number: int) -> Any:
    return state[number] if number in state else _nnx().State({})


class Signature:
    """The shapes and names of a step's arguments.

    Args:
        fn: the step; its parameters name the arguments.
        args: its arguments, with or without data.

    Attributes:
        names: the name of every array leaf.
        avals: shape and dtype of every array leaf.
        shardings: the sharding of every array leaf that has one, else None.
        places: the arguments that hold NNX objects.

    Raises:
        OpTypeError: no argument holds an array.
    """

    def __init__(self, fn: Callable, args: Sequence) -> None:
        self._first = take_apart(args)
        self.places = [i for i, arg in enumerate(args) if _holds_objects(arg)]
        arrays = self._first.arrays
        self.title = getattr(fn, "__name__", type(fn).__name__)
        if not arrays:
            raise OpTypeError(
                f"auto.plan({self.title}, ...)",
                f"arguments {[type(a).__name__ for a in args]} without an array",
                "the arguments of the step are pytrees of arrays or of jax.ShapeDtypeStruct",
                f"auto.plan({self.title}, params, opt_state, batch, mesh=mesh); of sbpjax's tensors pass x.jax()",
            )
        paths = jax.tree_util.tree_flatten_with_path(self.unflatten(range(len(arrays))))[0]
        parameters = _parameter_names(fn, len(args))
        named = {x: path for path, x in paths if isinstance(x, int)}
        self.names = [_name(parameters, named[i]) for i in range(len(arrays))]
        self.avals = [_aval(x) for x in arrays]
        self.shardings = [getattr(x, "sharding", None) for x in arrays]

    def unflatten(self, values: Sequence) -> tuple:
        """Return the arguments' trees with other values for their array leaves, and None for constants."""
        return unflatten(self._first.structure, values, dict.fromkeys(self._first.constants))

    def call(self, fn: Callable, arrays: Sequence) -> tuple[Any, Any]:
        """Run the step on array leaves; return its result and the new states of its NNX arguments."""
        args = list(unflatten(self._first.structure, arrays, self._first.constants))
        if not self.places:
            return fn(*args), ()
        nnx = _nnx()
        state = nnx.State({number: args[i] for number, i in enumerate(self.places)})
        for i, own in zip(self.places, objects := nnx.merge(self._first.definition, state), strict=True):
            args[i] = own
        result = fn(*args)
        _, state = nnx.split(objects)
        return result, tuple(_state_of(state, number) for number in range(len(self.places)))

    def states(self, values: Sequence) -> tuple:
        """Return the trees of the NNX arguments with other values for their leaves."""
        trees = self.unflatten(values)
        return tuple(trees[i] for i in self.places)

    def check(self, found: Arguments) -> None:
        """Refuse arguments that are not those that were planned for.

        Raises:
            OpValueError: another structure, shape, dtype or constant.
        """
        if found.structure != self._first.structure:
            raise self._form_error(
                f"arguments of the structure {_short(found.structure)}", _short(self._first.structure)
            )
        for i, value in found.constants.items():
            if i not in self._first.constants or not _equal(value, self._first.constants[i]):
                raise self._form_error(f"the constant {value!r}", repr(self._first.constants.get(i, "an array")))
        for name, x, aval in zip(self.names, found.arrays, self.avals, strict=True):
            shape, dtype = np.shape(x), getattr(x, "dtype", None)
            if shape != aval.shape or dtype is not None and dtype != aval.dtype:
                raise self._form_error(f"{name} {dtype}{list(shape)}", f"{aval.dtype}{list(aval.shape)}")

    def _form_error(self, seen: str, planned: str) -> OpValueError:
        rule = f"a plan is for arguments of one form; it was made for {planned}"
        fix = f"auto.plan({self.title}, *args, mesh=mesh) for these arguments"
        return OpValueError(f"the planned {self.title}(...)", seen, rule, fix)


def update_objects(found: Arguments, states: Sequence) -> None:
    """Write the new states into the NNX objects of a call's arguments."""
    if found.objects:
        nnx = _nnx()
        nnx.update(found.objects, nnx.State(dict(enumerate(states))))


def _equal(value: Any, planned: Any) -> bool:
    try:
        return value is planned or bool(value == planned)
    except Exception:  # of any class: the comparison is the user's
        return False


def _short(structure: Any) -> str:
    text = str(structure).removeprefix("PyTreeDef(").removesuffix(")")
    return text if len(text) < 160 else text[:157] + "..."


def _aval(x: Any) -> jax.ShapeDtypeStruct:
    if isinstance(x, (jax.Array, jax.ShapeDtypeStruct)):
        return jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))
    aval = jax.eval_shape(lambda y: y, x)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=isinstance(x, (int, float, complex)))


def _parameter_names(fn: Callable, count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "x")
    return [*names[:count], *(f"{rest}{i}" for i in range(count - len(names)))]


def _name(parameters: list[str], path: tuple) -> str:
    """Return the name of a leaf: the parameter, then keys and attributes with dots between."""
    inner = [jax.tree_util.keystr((entry,), simple=True) for entry in path[1:]]
    if inner and inner[-1] in ("value", "raw_value") and isinstance(path[-1], jax.tree_util.GetAttrKey):
        inner.pop()  # of an NNX variable
    return ".".join([parameters[path[0].idx], *inner])
