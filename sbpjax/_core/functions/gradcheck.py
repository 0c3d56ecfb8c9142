"""`gradcheck`: compares gradients with finite differences, for user-defined functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import Generator
from sbpjax._core.tensor.tape.backward import grad as _grad
from sbpjax._core.tensor.tape.grad_mode import enable_grad, no_grad
from sbpjax.errors import AutogradError

from . import random


class GradcheckError(AutogradError):
    """A gradient differs from the finite difference; the text has the element and the difference."""


def gradcheck(
    func: Callable,
    inputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Return whether a function's gradients agree with central differences.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: a tensor or a tuple; those in float64 that require grad are checked.
        eps: the step.
        atol: absolute tolerance.
        rtol: relative tolerance.
        raise_exception: raise where they differ, rather than return False.
        nondet_tol: how much two backward passes may differ.
        check_undefined_grad: accepted.
        check_batched_grad: accepted.
        check_forward_ad: accepted; forward mode is JAX's own.
        check_backward_ad: whether to check at all.
        fast_mode: accepted; all elements are checked.
        masked: accepted.

    Raises:
        GradcheckError: they differ.

    Example:
        >>> gradcheck(sbpjax.sin, sbpjax.ones(2, dtype=sbpjax.float64, requires_grad=True))
        True
    """
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    checked = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not checked:
        raise AutogradError(
            "gradcheck(func, inputs)",
            "no input that requires grad",
            "gradcheck expects at least one input tensor to require gradient",
            "sbpjax.randn(3, dtype=sbpjax.float64, requires_grad=True)",
        )
    if not check_backward_ad:
        return True
    outputs = _outputs(func, inputs)
    for o, out in enumerate(outputs):
        for i in checked:
            problem = _compare(func, inputs, outputs, o, out, i, eps, atol, rtol, nondet_tol)
            if problem is not None:
                if raise_exception:
                    raise GradcheckError(
                        "gradcheck(func, inputs)",
                        problem,
                        f"|analytical - numerical| <= {atol} + {rtol} |numerical|",
                        "check the backward; inputs should be float64 and away from kinks",
                    )
                return False
    return True


def _outputs(func, inputs) -> list:
    found = func(*inputs)
    found = found if isinstance(found, (tuple, list)) else (found,)
    return [x for x in found if isinstance(x, Tensor) and (x.dtype.is_floating_point or x.dtype.is_complex)]


def _compare(func, inputs, outputs, o: int, out, i: int, eps, atol, rtol, nondet_tol) -> str | None:
    numerical = _numerical(func, inputs, o, i, eps)
    analytical = _analytical(out, inputs[i], numerical.shape)
    if not np.allclose(analytical, numerical, rtol, atol):
        return (
            f"Jacobian mismatch for output {o} with respect to input {i}: numerical {numerical.tolist()}, "
            f"analytical {analytical.tolist()}"
        )
    again = _analytical(out, inputs[i], numerical.shape)
    if np.abs(again - analytical).max(initial=0.0) > nondet_tol:
        return f"backward is not reentrant: it gives other values the second time, by more than {nondet_tol}"
    return None


def _parts(x) -> np.ndarray:
    """Return the elements of a tensor as a vector of real numbers."""
    array = x.detach().to_local().numpy() if x.is_global else x.detach().numpy()
    flat = array.reshape(-1)
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat.astype(np.float64)


def _numerical(func, inputs, o: int, i: int, eps: float) -> np.ndarray:
    """Return the Jacobian ``(input parts, output parts)`` by central differences."""
    x = inputs[i].detach()
    columns = []
    units = [1.0, 1.0j] if x.dtype.is_complex else [1.0]
    with no_grad():
        for unit in units:
            for k in range(x.numel()):
                ends = []
                for sign in (1, -1):
                    moved = x.clone()
                    moved.view(-1)[k] += sign * eps * unit
                    moved_inputs = [moved if j == i else v for j, v in enumerate(inputs)]
                    ends.append(_parts(_outputs(func, moved_inputs)[o]).copy())
                columns.append((ends[0] - ends[1]) / (2 * eps))
    return np.stack(columns) if columns else np.zeros((0, _parts(_outputs(func, inputs)[o]).size))


def _analytical(out, x, shape) -> np.ndarray:
    found = np.zeros(shape)
    if not out.requires_grad:
        return found
    units = [1.0, 1.0j] if out.dtype.is_complex else [1.0]
    n = out.numel()
    for u, unit in enumerate(units):
        for k in range(n):
            direction = out.detach() * 0
            direction.view(-1)[k] = unit
            (g,) = _grad((out,), (x,), (direction,), retain_graph=True, allow_unused=True)
            if g is not None:
                found[:, u * n + k] = _parts(g)
    return found


def gradgradcheck(func: Callable, inputs, grad_outputs=None, **options) -> bool:
    """Return whether second derivatives agree with finite differences of the first; see `gradcheck`."""
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = _outputs(func, inputs)
    if grad_outputs is None:
        grad_outputs = [
            random.randn(tuple(o.shape), dtype=o.dtype, generator=Generator().manual_seed(i)).requires_grad_()
            for i, o in enumerate(outputs)
        ]
    grad_outputs = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
    count = len(inputs)

    def gradients(*both):
        xs, cots = both[:count], both[count:]
        with enable_grad():
            sources = [x if isinstance(x, Tensor) and x.requires_grad else _leaf(x) for x in xs]
            outs = _outputs(func, sources)
            wanted = [s for s, x in zip(sources, inputs) if isinstance(x, Tensor) and x.requires_grad]
            found = _grad(outs, wanted, cots, create_graph=True, allow_unused=True)
        return tuple(w * 0 if g is None else g for w, g in zip(wanted, found, strict=True))

    return gradcheck(gradients, (*inputs, *grad_outputs), **options)


def _leaf(x):
    floating = isinstance(x, Tensor) and (x.dtype.is_floating_point or x.dtype.is_complex)
    return x.detach().requires_grad_() if floating else x
