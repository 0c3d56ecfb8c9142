"""Weight normalisation: a weight reparametrised as direction and length, ``w = g * v / |v|``.

    layer = weight_norm(nn.Linear(20, 40))       # weight_g (40, 1), weight_v (40, 20), no parameter `weight`
    layer.weight                                 # computed from both whenever it is read

The module gets a subclass of its own class in which ``weight`` is a property. So nothing is stored that could be out of
date, and a compiled program sees the two parameters and the formula.

Source: Salimans and Kingma, Weight Normalization: A Simple Reparameterization (2016).
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import OpError, OpValueError
from sbpjax.nn.module import Module
from sbpjax.nn.parameter import Parameter

M = TypeVar("M", bound=Module)


def lengths(v: jax.Array, /, dim: int | None) -> jax.Array:
    """Return the norm of each slice of `v` along `dim`, with size 1 in the other dims; of all of it without one."""
    if dim is None:
        return jnp.sqrt(jnp.sum(v * v))
    return jnp.sqrt(jnp.sum(v * v, axis=tuple(i for i in range(v.ndim) if i != dim), keepdims=True))


def scale_slices(v: jax.Array, g: jax.Array, /, dim: int | None) -> jax.Array:
    """Return `v` with its slices along `dim` scaled to the lengths `g`."""
    return v * (g / lengths(v, dim))


def dim_of(operation: str, weight: Tensor, dim: int | None) -> int | None:
    """Return the dim of lengths counted from the front; None for one length, which -1 also means, as in PyTorch."""
    if dim in (None, -1):
        return None
    n = weight.ndim
    if not -n <= dim < n:
        rule = f"Dimension out of range (expected to be in range of [-{n}, {n - 1}], but got {dim})"
        fail("index", operation, f"dim={dim}, a weight of {n} dims", rule, "dim=0")
    return dim % n


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replace a parameter by its direction, ``<name>_v``, and its length, ``<name>_g``.

    Args:
        module: the module; it is changed and returned.
        name: the parameter.
        dim: the dim whose slices have lengths of their own; None or -1 for one length of the whole.

    Raises:
        IndexError: the weight has no such dim.
        OpValueError: the module has no such parameter.
        OpError: it is normalised already.

    Example:
        >>> layer = weight_norm(nn.Linear(20, 40))
    """
    operation, fix = f"weight_norm({type(module).__name__}, {name!r})", "weight_norm(nn.Linear(20, 40), 'weight')"
    if name in _names(module):
        rule = f"Cannot register two weight_norm hooks on the same parameter {name}"
        raise OpError(operation, "a normalised parameter", rule, "remove_weight_norm(module) first")
    weight = module._parameters.get(name)
    if weight is None:
        raise OpValueError(operation, f"parameters {list(module._parameters)}", f"it has no {name!r}", fix)
    dim = dim_of(operation, weight, dim)
    with no_grad():
        length = dispatch.run(op_of(lengths, (("dim", dim),)), (weight.detach(),))
        direction = weight.detach().clone()
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(length))
    module.register_parameter(f"{name}_v", Parameter(direction))
    _set_normalized_class(module, {**_names(module), name: dim})
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make a parameter of its direction and length again.

    Args:
        module: a module that `weight_norm` was called with.
        name: the parameter.

    Raises:
        OpValueError: it is not normalised.
    """
    names = _names(module)
    if name not in names:
        operation = f"remove_weight_norm({type(module).__name__}, {name!r})"
        rule = f"weight_norm of '{name}' not found in {module}"
        raise OpValueError(operation, f"normalised parameters {list(names)}", rule, "weight_norm(module) first")
    with no_grad():
        weight = getattr(module, name).detach()
    _set_normalized_class(module, {n: d for n, d in names.items() if n != name})
    delattr(module, f"{name}_g")
    delattr(module, f"{name}_v")
    module.register_parameter(name, Parameter(weight))
    return module


def _names(module: Module) -> dict[str, int | None]:
    """Return the normalised parameters of a module and their dims."""
    return getattr(type(module), "_weight_norms", {})


def _set_normalized_class(module: Module, names: dict[str, int | None]) -> None:
    # The weight is a property of the class, computed when read: a stored one would be out of date after each update.
    plain = getattr(type(module), "_plain_class", type(module))
    module.__class__ = _normalized_class(plain, tuple(names.items())) if names else plain


@functools.cache
def _normalized_class(plain: type, names: tuple[tuple[str, int | None], ...]) -> type:
    """Return the subclass in which parameters are computed: one for equal names, so equal modules stay equal."""
    members: dict[str, Any] = {name: property(_make_getter(name, dim)) for name, dim in names}
    members |= {"_weight_norms": dict(names), "_plain_class": plain, "__doc__": plain.__doc__}

    def __reduce_ex__(self: Module, protocol: Any) -> tuple:
        # Under its name pickle finds the plain class.
        return _new, (plain, names), self.__getstate__()

    members["__reduce_ex__"] = __reduce_ex__
    return type(plain.__name__, (plain,), members | {"__module__": plain.__module__})


def _new(plain: type, names: tuple[tuple[str, int | None], ...]) -> Module:
    """Return a module without its state, for copies and pickles."""
    module_class = _normalized_class(plain, names)
    return module_class.__new__(module_class)


def _make_getter(name: str, dim: int | None):
    def read(module: Module) -> Tensor:
        parameters = module._parameters
        return dispatch.run(op_of(scale_slices, (("dim", dim),)), (parameters[f"{name}_v"], parameters[f"{name}_g"]))

    return read
