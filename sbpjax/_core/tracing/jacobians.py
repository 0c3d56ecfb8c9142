"""`jvp`, `jacrev`, `jacfwd`, `hessian`: JAX's transforms, applied to the traced function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax.errors import OpError, OpTypeError

from . import tree
from .gradients import resolve_argnums
from .transform import Function, run


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return the outputs of a function, and how they change along a direction.

    Args:
        func: a function of the primals.
        primals: a tuple of arguments: tensors or nested structures of them.
        tangents: the direction, of the same structure.
        strict: accepted.
        has_aux: whether it returns ``(outputs, aux)``.

    Returns:
        ``(outputs, tangents of the outputs)``, and ``aux``.

    Example:
        >>> jvp(sbpjax.sin, (sbpjax.tensor(0.0),), (sbpjax.tensor(2.0),))
        (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise OpTypeError(
            "jvp(func, primals, tangents)",
            f"primals of type {type(primals).__name__}, tangents of type {type(tangents).__name__}",
            "both are tuples, one entry per argument",
            "jvp(func, (x,), (v,))",
        )
    function = Function(func, primals, {}, has_aux)
    directions, _ = tree.flatten(tangents)
    shapes = [tuple(t.shape) for t in function.tensors], [tuple(t.shape) for t in directions]
    if shapes[0] != shapes[1]:
        raise OpError(
            "jvp(func, primals, tangents)",
            f"primals of shapes {shapes[0]}, tangents of shapes {shapes[1]}",
            "tangents have the structure and the shapes of the primals",
            "tangents = tuple(torch.ones_like(p) for p in primals)",
        )
    n = len(function.tensors)
    counts: list[int] = []

    def body(arrays):
        outs, pushed, aux = jax.jvp(function.on_arrays, (arrays[:n],), (arrays[n:],), has_aux=True)
        pushed = [jax.numpy.zeros_like(o) if p.dtype == jax.dtypes.float0 else p for o, p in zip(outs, pushed)]
        counts[:] = [len(outs)]
        return [*outs, *pushed, *aux]

    found = run("jvp(...)", body, [*function.tensors, *directions])
    k = counts[0]
    outs, pushed = function.results.fill_places(found[:k]), function.results.fill_places(found[k : 2 * k])
    return (outs, pushed, function.along.fill_places(found[2 * k :])) if has_aux else (outs, pushed)


def linearize(func: Callable, *primals) -> tuple:
    """Return the outputs of a function, and the function from directions to changes of the outputs."""
    outputs = func(*primals)
    return outputs, lambda *tangents: jvp(func, primals, tangents)[1]


def _jacobian(transform, operation: str, func: Callable, argnums, has_aux: bool) -> Callable:
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        places = resolve_argnums(operation, argnums, args)
        function = Function(func, args, kwargs, has_aux)
        before = [len([x for x in tree.flatten(a)[0] if isinstance(x, Tensor)]) for a in args]
        starts = np.cumsum([0, *before])
        wanted = [i for p in places for i in range(starts[p], starts[p + 1])]
        counts: list[int] = []

        def of_selected(diff, arrays):
            merged = list(arrays)
            for i, value in zip(wanted, diff, strict=True):
                merged[i] = value
            return function.on_arrays(merged)

        def body(arrays):
            jacobian, aux = transform(of_selected, has_aux=True)([arrays[i] for i in wanted], arrays)
            counts[:] = [len(jacobian)]
            return [*(block for row in jacobian for block in row), *aux]

        found = run(f"{operation}(...)", body, function.tensors)
        n, m = counts[0], len(wanted)
        rows = [_like_arguments(args, places, found[i * m : (i + 1) * m], argnums) for i in range(n)]
        result = function.results.fill_places(rows)
        return (result, function.along.fill_places(found[n * m :])) if has_aux else result

    return wrapper


def _like_arguments(args: tuple, places: tuple, blocks: list, argnums):
    """Return one output's blocks in the structure of the arguments that it is differentiated by."""
    found, rest = [], iter(blocks)
    for place in places:
        leaves, structure = tree.flatten(args[place])
        found.append(tree.unflatten(structure, [next(rest) if isinstance(x, Tensor) else x for x in leaves]))
    return found[0] if isinstance(argnums, int) else tuple(found)


def jacrev(func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size=None) -> Callable:
    """Return a function that gives the Jacobian of a function, by rows.

    Args:
        func: a function of tensors.
        argnums: the arguments to differentiate by.
        has_aux: whether it returns ``(outputs, aux)``.
        chunk_size: accepted; all rows are computed at once.

    Returns:
        A function whose result has the outputs' structure, with in the place of each output its derivative by the
        chosen arguments, of shape ``(*output.shape, *argument.shape)``.
    """
    return _jacobian(jax.jacrev, "jacrev", func, argnums, has_aux)


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """Return a function that gives the Jacobian of a function, by columns; see `jacrev`."""
    return _jacobian(jax.jacfwd, "jacfwd", func, argnums, has_aux)


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """Return a function that gives the matrix of second derivatives of a function."""
    return jacfwd(jacrev(func, argnums), argnums)
