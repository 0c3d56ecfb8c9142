"""Parameters as one vector, and creation of modules without initialising their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from sbpjax._core import functions
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn.module import Module
from sbpjax.nn.names import not_tensor_error


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the parameters' elements one after the other."""
    return functions.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write a vector's elements into the parameters, one after the other."""
    if not isinstance(vec, Tensor):
        raise not_tensor_error("vector_to_parameters(vec, ...)", vec)
    start = 0
    with no_grad():
        for parameter in parameters:
            count = parameter.numel()
            parameter.copy_(vec[start : start + count].reshape(parameter.shape))
            start += count


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Module:
    """Return a module with uninitialised tensors.

    It is made without data (``device="meta"``) and then given memory, so nothing is drawn or written.

    Args:
        module_cls: a `Module` class whose constructor takes ``device``.
        args: its arguments.
        kwargs: its arguments by name; ``device`` is the device of the tensors.

    Raises:
        OpError: it is no Module class, or its constructor takes no ``device``.

    Example:
        >>> layer = skip_init(nn.Linear, 1024, 1024, device="cpu")
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        rule = f"Expected a Module; got {module_cls}"
        fail("shape", "skip_init(module_cls, ...)", repr(module_cls), rule, "skip_init(nn.Linear, 2, 3)")
    names = inspect.signature(module_cls).parameters
    if "device" not in names and not any(p.kind is p.VAR_KEYWORD for p in names.values()):
        rule = "Module must support a 'device' arg to skip initialization"
        fail(
            "shape",
            f"skip_init({module_cls.__name__}, ...)",
            f"arguments {list(names)}",
            rule,
            "def __init__(..., device)",
        )
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device="cpu" if device is None else device)
