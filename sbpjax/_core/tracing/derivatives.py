"""Derivatives of functions on the tape: `jacobian`, `hessian`, `vjp`, `jvp`, `vhp`, `hvp`.

They take a function and its inputs and return numbers, as PyTorch's ``torch.autograd.functional`` does. The function is
any Python: it is run, and the tape walked. `sbpjax.func` has the transforms that compose.

A direction is pushed forward by two walks backward: for ``g(u) = vjp(u)``, which is linear in ``u``, the gradient of
``g(u) · v`` by ``u`` is ``J v``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbpjax._core import functions
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.tape.backward import grad as _grad
from sbpjax._core.tensor.tape.grad_mode import enable_grad
from sbpjax.errors import AutogradError, OpTypeError

from .jacobians import jacfwd, jacrev


def _tuple(operation: str, label: str, value) -> tuple[bool, tuple]:
    """Return whether there is a tuple of tensors rather than one, and the tuple."""
    several = isinstance(value, (tuple, list))
    values = tuple(value) if several else (value,)
    for x in values:
        if not isinstance(x, Tensor):
            raise OpTypeError(
                operation,
                f"{label} with a {type(x).__name__}",
                f"the {label} given to {operation} must be either a Tensor or a tuple of Tensors",
                "pass tensors",
            )
    return several, values


def _inputs(values: tuple, create_graph: bool) -> tuple:
    """Return tensors of the same values that require grad, on the caller's tape if that is to be differentiated."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in values)
    return tuple(x.detach().requires_grad_() for x in values)


def _run(operation: str, func: Callable, inputs: tuple) -> tuple[bool, tuple]:
    return _tuple(operation, "outputs of the function", func(*inputs))


def _check_grads(operation: str, strict: bool, found, inputs: tuple, label: str) -> tuple:
    """Return gradients with zeros for None, which is an error if ``strict``."""
    if strict and any(g is None for g in found):
        i = next(i for i, g in enumerate(found) if g is None)
        raise AutogradError(
            f"{operation}(strict=True)",
            f"{label} is independent of input {i}",
            "strict refuses derivatives that are zero because nothing leads there",
            "strict=False gives zeros",
        )
    return tuple(x.detach() * 0 if g is None else g for x, g in zip(inputs, found, strict=True))


def _run_backward(outputs, inputs, cotangents, create_graph: bool) -> tuple:
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    outs, cots = zip(*pairs, strict=True)
    return _grad(outs, inputs, cots, retain_graph=True, create_graph=create_graph, allow_unused=True)


def _vector_or_ones(operation: str, v, like: tuple, of: str) -> tuple:
    """Return the cotangents or tangents ``v``, ones for a single scalar."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise AutogradError(
                operation,
                f"no v for {of} of shapes {[list(x.shape) for x in like]}",
                f"the vector v can only be None if {of} is a single Tensor with a single element",
                "pass v, of the same shapes",
            )
        return tuple(x.detach() * 0 + 1 for x in like)
    _, values = _tuple(operation, "v", v)
    if [tuple(x.shape) for x in values] != [tuple(x.shape) for x in like]:
        raise AutogradError(
            operation,
            f"v of shapes {[list(x.shape) for x in values]}",
            f"v has the shapes of {of}: {[list(x.shape) for x in like]}",
            "reshape v",
        )
    return values


def _detach_and_unpack(values: tuple, several: bool, create_graph: bool) -> Any:
    values = values if create_graph else tuple(x.detach() for x in values)
    return values if several else values[0]


def vjp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return the outputs of a function, and the product of ``v`` with its Jacobian.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: a tensor or a tuple of tensors.
        v: a tensor per output; may be left out for one number.
        create_graph: put the results on the tape.
        strict: raise where an output does not depend on an input, rather than give zeros.

    Returns:
        ``(outputs, vjp)``, the second with the inputs' structure.
    """
    with enable_grad():
        several, values = _tuple("vjp", "inputs", inputs)
        sources = _inputs(values, create_graph)
        out_several, outputs = _run("vjp", func, sources)
        v = _vector_or_ones("vjp", v, outputs, "the output")
        found = _check_grads("vjp", strict, _run_backward(outputs, sources, v, create_graph), sources, "the output")
    return _detach_and_unpack(outputs, out_several, create_graph), _detach_and_unpack(found, several, create_graph)


def jvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return the outputs of a function, and the product of its Jacobian with ``v``; see `vjp`."""
    with enable_grad():
        several, values = _tuple("jvp", "inputs", inputs)
        sources = _inputs(values, create_graph)
        v = _vector_or_ones("jvp", v, sources, "the input")
        out_several, outputs = _run("jvp", func, sources)
        pushed = _push_forward("jvp", outputs, sources, v, strict, create_graph)
    return _detach_and_unpack(outputs, out_several, create_graph), _detach_and_unpack(pushed, out_several, create_graph)


def _push_forward(operation: str, outputs: tuple, sources: tuple, v: tuple, strict: bool, create_graph: bool) -> tuple:
    """Return ``J v`` of recorded outputs, by walking back twice."""
    probes = tuple((o.detach() * 0).requires_grad_() for o in outputs)
    back = _check_grads(operation, strict, _run_backward(outputs, sources, probes, True), sources, "the output")
    return _check_grads(operation, False, _run_backward(back, probes, v, create_graph), probes, "the gradient")


def jacobian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function at some inputs.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: a tensor or a tuple of tensors.
        create_graph: put the result on the tape.
        strict: raise where an output does not depend on an input, rather than give zeros.
        vectorize: compute all rows as one program (`sbpjax.func.jacrev`), for functions that can be traced.
        strategy: ``"reverse-mode"`` or, if vectorized, ``"forward-mode"``.

    Returns:
        Per output (if there is a tuple of them) and per input (likewise) a tensor ``(*output.shape, *input.shape)``.
    """
    several, values = _tuple("jacobian", "inputs", inputs)
    if strategy != "reverse-mode" and not vectorize:
        raise AutogradError(
            f"jacobian(strategy={strategy!r})", "vectorize=False", "forward mode is vectorized", "vectorize=True"
        )
    if vectorize:
        return _vectorize_jacobian(func, values, several, create_graph, strategy)
    with enable_grad():
        sources = _inputs(values, create_graph)
        out_several, outputs = _run("jacobian", func, sources)
        rows = []
        for i, out in enumerate(outputs):
            blocks = [[] for _ in sources]
            flat = out.reshape(-1)
            for k in range(flat.numel()):
                found = _run_backward((flat[k],), sources, (flat[k].detach() * 0 + 1,), create_graph)
                found = _check_grads("jacobian", strict, found, sources, f"output {i}")
                for block, g in zip(blocks, found, strict=True):
                    block.append(g)
            rows.append(tuple(_stack_rows(b, out, x) for b, x in zip(blocks, sources, strict=True)))
    found = tuple(_detach_and_unpack(row, several, create_graph) for row in rows)
    return found if out_several else found[0]


def _stack_rows(rows: list, out: Tensor, x: Tensor) -> Tensor:
    shape = (*out.shape, *x.shape)
    return functions.stack(rows).reshape(shape) if rows else x.new_zeros(shape)


def _vectorize_jacobian(func, values: tuple, several: bool, create_graph: bool, strategy: str):
    transform = jacrev if strategy == "reverse-mode" else jacfwd
    with enable_grad():
        sources = values if create_graph else tuple(x.detach() for x in values)
        found = transform(func, argnums=tuple(range(len(values))))(*sources)
    out_several = isinstance(found[0], tuple) if found else False
    rows = found if out_several else (found,)
    rows = tuple(_detach_and_unpack(tuple(row), several, create_graph) for row in rows)
    return rows if out_several else rows[0]


def hessian(
    func: Callable,
    inputs,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of a function of one number; see `jacobian`."""
    several, values = _tuple("hessian", "inputs", inputs)

    def scalar(*xs):
        out = func(*xs)
        if not isinstance(out, Tensor) or out.numel() != 1:
            raise AutogradError(
                "hessian(func, inputs)",
                f"an output of shape {list(out.shape)}" if isinstance(out, Tensor) else type(out).__name__,
                "the function returns a single Tensor with a single element",
                "return its sum",
            )
        return out.reshape(())

    def gradient(*xs):
        found = jacobian(scalar, xs, create_graph=True, strict=strict)
        return found if several else found[0]

    found = jacobian(gradient, values, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0]


def _gradient_of(operation: str, func: Callable, sources: tuple, strict: bool) -> tuple:
    out_several, outputs = _run(operation, func, sources)
    if out_several or outputs[0].numel() != 1:
        raise AutogradError(
            operation,
            f"outputs of shapes {[list(o.shape) for o in outputs]}",
            "the function returns a single Tensor with a single element",
            "return its sum",
        )
    ones = tuple(o.detach() * 0 + 1 for o in outputs)
    return outputs, _check_grads(operation, strict, _run_backward(outputs, sources, ones, True), sources, "the output")


def vhp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return the value of a function, and the product of ``v`` with its matrix of second derivatives; see `vjp`."""
    with enable_grad():
        several, values = _tuple("vhp", "inputs", inputs)
        sources = _inputs(values, create_graph)
        v = _vector_or_ones("vhp", v, sources, "the input")
        outputs, gradient = _gradient_of("vhp", func, sources, strict)
        found = _check_grads("vhp", strict, _run_backward(gradient, sources, v, create_graph), sources, "the gradient")
    return _detach_and_unpack(outputs, False, create_graph), _detach_and_unpack(found, several, create_graph)


def hvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return the value of a function, and the product of its matrix of second derivatives with ``v``; see `vjp`."""
    with enable_grad():
        several, values = _tuple("hvp", "inputs", inputs)
        sources = _inputs(values, create_graph)
        v = _vector_or_ones("hvp", v, sources, "the input")
        outputs, gradient = _gradient_of("hvp", func, sources, strict)
        found = _push_forward("hvp", gradient, sources, v, strict, create_graph)
    return _detach_and_unpack(outputs, False, create_graph), _detach_and_unpack(found, several, create_graph)
