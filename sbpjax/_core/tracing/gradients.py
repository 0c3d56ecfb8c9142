"""`grad`, `grad_and_value`, `vjp`: gradients of any Python function, on the tape.

A gradient is itself on the tape (``create_graph``), so these nest, and gradients flow through them to tensors that the
function closed over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.nodes.node import AccumulateGrad
from sbpjax._core.tensor.storage.payload import node_of
from sbpjax._core.tensor.tape.backward import grad as _grad
from sbpjax._core.tensor.tape.engine import leading_to
from sbpjax._core.tensor.tape.grad_mode import enable_grad
from sbpjax.errors import OpError, OpTypeError

from . import tree


def resolve_argnums(operation: str, argnums, args: tuple) -> tuple[int, ...]:
    """Return the positions that ``argnums`` names."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not isinstance(n, int) or not -len(args) <= n < len(args):
            raise OpError(
                f"{operation}(argnums={argnums!r})",
                f"{len(args)} positional arguments",
                "argnums counts positional arguments from 0",
                "argnums=0",
            )
    return tuple(n % len(args) for n in numbers)


def _leaves_of(operation: str, value) -> list:
    leaves, _ = tree.flatten(value)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise OpTypeError(
                operation, f"a {type(leaf).__name__} among the inputs", "gradients are of tensors", "pass tensors"
            )
    return leaves


def _track_tensor(x: Tensor) -> Tensor:
    """Return a tensor of the same value that requires grad, on the tape after ``x`` if that is on one."""
    if x.requires_grad and mode.grad:
        return x.view_as(x) if x.is_leaf else x.clone()
    return x.detach().requires_grad_()


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function that gives the gradient of a scalar function, and its value.

    Args:
        func: a function that returns a 0-d tensor, or ``(output, aux)`` if ``has_aux``.
        argnums: the arguments to differentiate by; each a tensor or a nested structure of tensors.
        has_aux: whether it returns something along.

    Returns:
        A function with ``func``'s arguments that returns ``(gradient, value)``, or ``(gradient, (value, aux))``.

    Example:
        >>> grad_and_value(lambda x: (x * x).sum())(sbpjax.ones(2))
        (tensor([2., 2.]), tensor(2.))
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        places = resolve_argnums("grad", argnums, args)
        outer = mode.grad
        with enable_grad():
            wrapped, flat, structures = list(args), [], []
            for place in places:
                _leaves_of("grad(func)", args[place])
                leaves, structure = tree.flatten(args[place])
                inputs = [_track_tensor(x) for x in leaves]
                wrapped[place] = tree.unflatten(structure, inputs)
                flat += inputs
                structures.append((structure, len(inputs)))
            result = func(*wrapped, **kwargs)
            value, aux = result if has_aux else (result, None)
            if not isinstance(value, Tensor) or value.ndim != 0:
                seen = f"shape {list(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
                raise OpError(
                    "grad(func)", seen, "Expected f(*args) to return a scalar tensor", "return the sum or the mean"
                )
            grads = _gradients([value], flat, None, outer)
        found, start = [], 0
        for structure, count in structures:
            found.append(tree.unflatten(structure, grads[start : start + count]))
            start += count
        grads = found[0] if isinstance(argnums, int) else tuple(found)
        grads, value, aux = _detach_from_inputs((grads, value, aux), outer, flat)
        return (grads, (value, aux)) if has_aux else (grads, value)

    return wrapper


def _gradients(outputs: list, inputs: list, cotangents, create_graph: bool) -> list:
    """Return gradients, zeros where an output does not depend on an input."""
    pairs = [(o, None if cotangents is None else c) for o, c in zip(outputs, cotangents or outputs) if o.requires_grad]
    if not pairs or not inputs:
        return [x.detach() * 0 for x in inputs]
    outs, cots = zip(*pairs, strict=True)
    given = None if cotangents is None else list(cots)
    found = _grad(outs, inputs, given, retain_graph=True, create_graph=create_graph, allow_unused=True)
    return [x.detach() * 0 if g is None else g for x, g in zip(inputs, found, strict=True)]


def _detach_from_inputs(value, outer: bool, inputs: list):
    """Return a result as it is seen outside: on the tape only if that records, and leads beyond the inputs."""
    leaves, structure = tree.flatten(value)
    kept = _nodes_beyond(leaves, {node_of(x) for x in inputs if x.is_leaf}) if outer else ()
    found = [x.detach() if isinstance(x, Tensor) and node_of(x) not in kept else x for x in leaves]
    return tree.unflatten(structure, found)


def _nodes_beyond(values: list, own: set) -> set:
    """Return the tape nodes of some values that lead to other leaves than its own."""
    roots = list({node_of(x) for x in values if isinstance(x, Tensor) and x.requires_grad})
    seen, stack = set(roots), list(roots)
    while stack:
        new = {child for child in stack.pop().edges if child is not None} - seen
        seen |= new
        stack += new
    others = {node for node in seen if node.__class__ is AccumulateGrad} - own
    return leading_to([(node, 0, None) for node in roots], others) if others else set()


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """Return a function that gives the gradient of a scalar function; see `grad_and_value`.

    Example:
        >>> grad(grad(lambda x: x**3))(sbpjax.tensor(2.0))
        tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(func: Callable, *primals, has_aux: bool = False) -> Any:
    """Return the outputs of a function, and a function from their cotangents to those of its inputs.

    Args:
        func: a function of the primals, which are tensors or nested structures of them.
        primals: where it is differentiated.
        has_aux: whether it returns ``(outputs, aux)``.

    Returns:
        ``(outputs, vjp_fn)``, or ``(outputs, vjp_fn, aux)``. ``vjp_fn(cotangents)`` returns a tuple with one entry per
        primal.
    """
    outer = mode.grad
    with enable_grad():
        _leaves_of("vjp(func, *primals)", primals)
        leaves, structure = tree.flatten(primals)
        inputs = [_track_tensor(x) for x in leaves]
        result = func(*tree.unflatten(structure, inputs))
    outputs, aux = result if has_aux else (result, None)
    flat, out_structure = tree.flatten(outputs)

    def vjp_fn(*cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        cots, cot_structure = tree.flatten(given)
        if len(cots) != len(flat):
            raise OpError(
                "vjp_fn(cotangents)",
                f"{len(cots)} cotangents for {len(flat)} outputs",
                "cotangents have the structure of the outputs",
                "vjp_fn(cotangents)",
            )
        recording = mode.grad if create_graph is None else create_graph
        found = _gradients(flat, inputs, cots, recording)
        return _detach_from_inputs(tree.unflatten(structure, found), recording, inputs)

    seen = _detach_from_inputs(outputs, outer, inputs)
    return (seen, vjp_fn, aux) if has_aux else (seen, vjp_fn)
