"""`vmap`: vectorize a function of examples over batches."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax.errors import OpTypeError, OpValueError

from . import tree
from .transform import Function, run

_names = itertools.count()


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size=None
) -> Callable:
    """Return a function that runs ``func`` once per example of a batch, as one program.

    Args:
        func: a function of tensors that returns tensors, nested as it likes.
        in_dims: which dim of each input counts the examples: an int, or a structure like the inputs with ints and None
            (an input that all examples share).
        out_dims: where that dim goes in each output.
        randomness: ``"error"`` refuses random ops, ``"same"`` draws the same numbers for every example,
            ``"different"`` draws anew for each.
        chunk_size: run so many examples at a time.

    Returns:
        The function of batches.

    Example:
        >>> vmap(sbpjax.dot)(sbpjax.ones(3, 5), sbpjax.ones(3, 5))
        tensor([5., 5., 5.])
    """
    if randomness not in ("error", "same", "different"):
        raise OpValueError(
            f"vmap(randomness={randomness!r})",
            repr(randomness),
            "randomness is 'error', 'same' or 'different'",
            "randomness='different'",
        )

    @functools.wraps(func)
    def call_batched(*args, **kwargs):
        dims = _input_dims(in_dims, args)
        if chunk_size is None:
            return _vmap_at_once(func, args, kwargs, dims, out_dims, randomness)
        return _in_chunks(func, args, kwargs, dims, out_dims, randomness, chunk_size)

    return call_batched


def _input_dims(in_dims, args: tuple) -> list:
    """Return a dim or None per leaf of the positional arguments."""
    if not isinstance(in_dims, (int, tuple, list)):
        raise _bad_dims(in_dims, f"in_dims of type {type(in_dims).__name__}")
    if isinstance(in_dims, (tuple, list)) and len(in_dims) != len(args):
        raise _bad_dims(in_dims, f"{len(in_dims)} in_dims for {len(args)} inputs")
    found: list = []
    _collect_dims(in_dims if isinstance(in_dims, int) else tuple(in_dims), args, found, in_dims)
    if all(d is None for d in found):
        raise _bad_dims(in_dims, "no input that is mapped")
    return found


def _collect_dims(dims, value, found: list, operation) -> None:
    leaves, structure = tree.flatten(value)
    if dims is None or (isinstance(dims, int) and not isinstance(dims, bool)):
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                found.append(_dim(dims, leaf, operation))
            elif dims is not None and operation is not dims:
                raise _bad_dims(operation, f"in_dim {dims} for a {type(leaf).__name__}")
            else:
                found.append(None)
        return
    if structure is tree.LEAF:
        raise _bad_dims(operation, f"in_dims {dims!r} for one {type(value).__name__}")
    values = list(value.values()) if isinstance(value, dict) else list(value)
    if isinstance(dims, dict):
        if not isinstance(value, dict) or dims.keys() != value.keys():
            raise _bad_dims(operation, f"in_dims {dims!r} for a {type(value).__name__}")
        dims = [dims[k] for k in value]
    if not isinstance(dims, (list, tuple)) or len(dims) != len(values):
        raise _bad_dims(operation, f"in_dims {dims!r} for a {type(value).__name__} of {len(values)}")
    for d, v in zip(dims, values, strict=True):
        _collect_dims(d, v, found, operation)


def _dim(dim, x: Tensor, operation):
    if dim is None:
        return None
    if not -x.ndim <= dim < x.ndim:
        raise _bad_dims(operation, f"in_dim {dim} for an input of {x.ndim} dims")
    return dim % x.ndim


def _bad_dims(in_dims, seen: str) -> OpValueError:
    return OpValueError(
        f"vmap(in_dims={in_dims!r})",
        seen,
        "in_dims is an int, or has the structure of the inputs; each int is a dim of its tensor",
        "in_dims=(0, None) maps the first input and shares the second",
    )


def _vmap_at_once(func, args, kwargs, dims, out_dims, randomness):
    function = Function(func, args, kwargs)
    count = len(tree.flatten(args)[0])
    axes = [dims[i] if i < count else 0 for i in function.places]  # keywords are mapped over their first dim
    sizes = {t.shape[a] for t, a in zip(function.tensors, axes, strict=True) if a is not None}
    if len(sizes) > 1:
        raise OpValueError(
            "vmap(...)", f"inputs with {sorted(sizes)} examples", "all mapped dims have one size", "check in_dims"
        )
    name = f"vmap{next(_names)}"

    def one(arrays):
        outer = default_generator.trace
        assert outer is not None  # `run` traces
        key = outer.key
        if randomness == "different":
            key = jax.random.fold_in(key, jax.lax.axis_index(name))
        with default_generator.under_trace(key, outer.base + outer.drawn) as stream:
            outs, _ = function.on_arrays(arrays)
        outer.drawn += stream.drawn
        if stream.drawn and randomness == "error":
            raise OpTypeError(
                "vmap(...)",
                "a random op in the function",
                "randomness='error' refuses to choose between one draw for all examples and one for each",
                "vmap(func, randomness='different')  # or 'same'",
            )
        if any(leaf is not None for leaf in function.results.static):
            raise OpValueError(
                "vmap(...)",
                "a function that returns something that is no tensor",
                "a batch is made of tensors: functions under vmap must only return Tensors",
                "return tensors",
            )
        return outs

    def body(arrays):
        outs = jax.vmap(one, in_axes=(axes,), out_axes=0, axis_name=name, axis_size=next(iter(sizes)))(arrays)
        placed = _output_dims(out_dims, function, len(outs))
        return [out if d == 0 else jax.numpy.moveaxis(out, 0, d) for out, d in zip(outs, placed, strict=True)]

    found = run("vmap(...)", body, function.tensors)
    return function.results.fill_places(found)


def _output_dims(out_dims, function: Function, count: int) -> list[int]:
    if isinstance(out_dims, int):
        return [out_dims] * count
    leaves, _ = tree.flatten(out_dims)
    if len(leaves) == 1:
        return leaves * count
    if len(leaves) != count:
        raise OpValueError(
            f"vmap(out_dims={out_dims!r})",
            f"{count} outputs",
            "out_dims is an int, or has one per output",
            "out_dims=0",
        )
    return leaves


def _in_chunks(func, args, kwargs, dims, out_dims, randomness, chunk_size: int):
    leaves, structure = tree.flatten(args)
    size = next(x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None)
    parts = []
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        cut = [x if d is None else x.narrow(d, start, length) for x, d in zip(leaves, dims, strict=True)]
        parts.append(
            tree.flatten(_vmap_at_once(func, tree.unflatten(structure, cut), kwargs, dims, out_dims, randomness))
        )
    placed = tree.flatten(out_dims)[0]
    outs = list(zip(*[found for found, _ in parts], strict=True))
    placed = placed * len(outs) if len(placed) == 1 else placed
    return tree.unflatten(parts[0][1], [functions.cat(list(o), dim=d) for o, d in zip(outs, placed, strict=True)])
