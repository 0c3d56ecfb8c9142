"""`to_pure`: a module as a pure function of its parameters, for JAX's own transforms and libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.handle.mode import mode
from sbpjax._core.tensor.handle.tensor import wrap_any
from sbpjax._core.tensor.storage.payload import payload

from . import tree
from .functional_call import swap_tensors


def to_pure(module, *, mutable: bool = False) -> tuple[Callable, dict[str, jax.Array]]:
    """Return a module as a pure function of arrays, and its parameters.

    Args:
        module: the module; its values are read now, and it is not changed by calls of the function.
        mutable: return the new buffers too.

    Returns:
        ``(apply, params)``: ``params`` is a dict of names to arrays (global parameters as sharded arrays), and
        ``apply(params, *args, buffers=None, key=None, **kwargs)`` gives the module's results, with arrays for tensors;
        with ``mutable`` ``(outputs, buffers)``. ``buffers`` are the module's own by default; ``key`` is a
        ``jax.random.key`` from which dropout and the like draw.

    Example:
        >>> apply, params = nn.to_pure(nn.Linear(3, 1))
        >>> jax.grad(lambda p, x: apply(p, x).sum())(params, jnp.ones((2, 3), "float32"))["bias"]
        Array([2.], dtype=float32)
    """
    own = {k: _array(v) for k, v in module.named_buffers()}
    params = {k: _array(v) for k, v in module.named_parameters()}

    def apply(params: dict, *args, buffers: dict | None = None, key: Any = None, **kwargs):
        states = {k: wrap_any(jnp.asarray(v)) for k, v in (own if buffers is None else buffers).items()}
        given = {**{k: wrap_any(jnp.asarray(v)) for k, v in params.items()}, **states}
        leaves, structure = tree.flatten((args, kwargs))
        leaves = [wrap_any(x) if isinstance(x, jax.Array) else _from_numpy(x) for x in leaves]
        args, kwargs = tree.unflatten(structure, leaves)
        before = mode.grad, mode.closure
        mode.grad = False  # JAX differentiates; a tape would be in vain
        if mode.closure is None:  # an `autograd.Function` gives JAX its own backward
            mode.closure = lambda x: payload(x)
        try:
            with swap_tensors(module, given, strict=True) if not _has_tied(module) else swap_tensors(module, given):
                if key is None:
                    outs = module(*args, **kwargs)
                else:
                    with default_generator.under_trace(key):
                        outs = module(*args, **kwargs)
        finally:
            mode.grad, mode.closure = before
        outs = _arrays(outs)
        return (outs, {k: payload(v) for k, v in states.items()}) if mutable else outs

    return apply, params


def _has_tied(module) -> bool:
    return len(list(module.named_parameters())) < len(list(module.named_parameters(remove_duplicate=False)))


def _array(x: Tensor) -> jax.Array:
    return x.detach().jax() if x.is_global else payload(x)


def _from_numpy(x):
    return wrap_any(jnp.asarray(x)) if isinstance(x, np.ndarray) else x


def _arrays(value):
    leaves, structure = tree.flatten(value)
    return tree.unflatten(structure, [payload(x) if isinstance(x, Tensor) else x for x in leaves])
