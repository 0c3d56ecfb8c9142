"""Gradient clipping by total norm or by value; one compiled program per placement."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.handle.tensor import wrap
from sbpjax._core.tensor.storage.payload import put_results
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax._core.tensor.tape.row_grad import values_of
from sbpjax.optim.run import TRACE, place_of, run_on_device


def _promote_to_float32(x: jax.Array) -> jax.Array:
    # A square overflows float16 from 256 on, and a bfloat16 sum of 256 equal squares no longer grows.
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def _norm(grads: tuple[jax.Array, ...], norm_type: float) -> jax.Array:
    grads = tuple(_promote_to_float32(g) for g in grads)
    if norm_type == 0.0:  # the 0-norm of the 0-norms: how many gradients are not all zeros
        return sum(jnp.any(g != 0).astype(g.dtype) for g in grads)
    if norm_type == math.inf:
        return jnp.stack([jnp.max(jnp.abs(g)) for g in grads]).max()
    if norm_type == 2.0:
        return jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in grads))
    return sum(jnp.sum(jnp.abs(g) ** norm_type) for g in grads) ** (1.0 / norm_type)


def total_norm(*grads: jax.Array, norm_type: float) -> jax.Array:
    """Return the norm of all gradients as one vector, in their dtype."""
    return _norm(grads, norm_type).astype(jnp.result_type(*grads))


def clip_to(norm: jax.Array, max_norm: jax.Array, *grads: jax.Array) -> tuple[jax.Array, ...]:
    """Return the gradients scaled so that a total of `norm` becomes at most `max_norm`."""
    factor = jnp.minimum(max_norm / (_promote_to_float32(norm) + 1e-6), 1.0)
    return tuple((_promote_to_float32(g) * factor.astype(_promote_to_float32(g).dtype)).astype(g.dtype) for g in grads)


def clip_and_norm(max_norm: jax.Array, *grads: jax.Array, norm_type: float) -> tuple[jax.Array, ...]:
    """Return the gradients scaled so that their total norm is at most `max_norm`, and the norm before."""
    norm = _norm(grads, norm_type)
    return (*clip_to(norm, max_norm, *grads), norm.astype(jnp.result_type(*grads)))


for _fn in (total_norm, clip_to, clip_and_norm):  # all stages of a pipeline have one norm
    _fn.crosses_placements = True  # type: ignore[attr-defined]


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [values_of(p.grad) for p in parameters if p.grad is not None]


def _group_by_place(tensors: list[Tensor]) -> list[list[Tensor]]:
    groups: dict = {}
    for tensor in tensors:
        groups.setdefault(place_of(tensor), []).append(tensor)
    return list(groups.values())


def _codes(tensor: Tensor) -> tuple | None:
    """Return the layout of a written gradient, None in a trace, where the planner chooses."""
    return getattr(tensor.layout, "codes", None)


def _float(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        kind = "value" if isinstance(error, ValueError) else "type"
        fail(kind, f"clipping gradients with {name}={value!r}", type(value).__name__, str(error), f"{name}=2.0")


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all elements of all tensors.

    Args:
        tensors: usually gradients.
        norm_type: p of the norm; may be infinity.
        error_if_nonfinite: raise if the norm is infinite or NaN.
        foreach: accepted for compatibility; all tensors are always taken at once.

    Raises:
        OpValueError: `norm_type` is text that is not a number.
        OpTypeError: `norm_type` is not a number.
        OpError: the norm is not finite, with `error_if_nonfinite`.
    """
    static = (("norm_type", _float("norm_type", norm_type)),)
    tensors = [tensors] if isinstance(tensors, Tensor) else [values_of(t) for t in tensors]
    if not tensors:
        return from_data.tensor(0.0)
    with no_grad():
        norms = [dispatch.run(op_of(total_norm, static), tuple(group)) for group in _group_by_place(tensors)]
        norm = norms[0]
        if len(norms) > 1:
            static = static if norm_type else (("norm_type", 1.0),)  # numbers of gradients are added
            norm = dispatch.run(op_of(total_norm, static), tuple(from_data.tensor(n.item()) for n in norms))
    if error_if_nonfinite and place_of(norm) is TRACE:
        fail(
            "value",
            "clipping gradients with error_if_nonfinite=True in a compiled program",
            "a norm that has no value yet",
            "an error cannot depend on a value while the program is compiled",
            "error_if_nonfinite=False, and look at the norm that is returned; a GradScaler skips such steps",
        )
    if error_if_nonfinite and not math.isfinite(norm.item()):
        fail(
            "shape",
            "clipping gradients with error_if_nonfinite=True",
            f"a total norm of {norm.item()}",
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is non-finite, so it cannot "
            "be clipped",
            "error_if_nonfinite=False scales the gradients by it anyway",
        )
    return norm


def _clip(groups: list[list[Tensor]], max_norm: Any, norm: Tensor) -> None:
    """Scale gradients, by place, so that a total of `norm` becomes at most `max_norm`."""
    grads: list[Tensor] = []
    values: list[Tensor] = []
    with no_grad():
        for group in groups:
            value = norm if len(groups) == 1 else norm.item()
            pins = tuple(_codes(g) for g in group) if group[0].is_global else None
            values += dispatch.run(op_of(clip_to), (value, max_norm, *group), pins)
            grads += group
        put_results(grads, values)


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients in place as `clip_grad_norm_` does, by a known norm, e.g. from `get_total_norm`.

    Args:
        parameters: whose gradients; those without one are left out.
        max_norm: the bound.
        total_norm: the norm, 0-d.
        foreach: accepted for compatibility; all gradients are always taken at once.
    """
    _clip(_group_by_place(_grads(parameters)), float(max_norm), total_norm)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place so that their total norm is at most `max_norm`.

    Args:
        parameters: whose gradients; those without one are left out.
        max_norm: the bound; a number, so that changing it compiles nothing anew.
        norm_type: p of the norm; may be infinity.
        error_if_nonfinite: raise, before anything is written, if the norm is infinite or NaN.
        foreach: accepted for compatibility; all gradients are always taken at once.

    Returns:
        The total norm before clipping, 0-d.

    Raises:
        OpValueError: `max_norm` or `norm_type` is text that is not a number.
        OpTypeError: `max_norm` or `norm_type` is not a number.
        OpError: the norm is not finite, with `error_if_nonfinite`.
    """
    grads = _grads(parameters)
    groups = _group_by_place(grads)
    max_norm = max_norm if isinstance(max_norm, (Tensor, jax.Array)) else _float("max_norm", max_norm)
    if len(groups) != 1 or error_if_nonfinite:
        norm = get_total_norm(grads, norm_type, error_if_nonfinite)
        _clip(groups, max_norm, norm)
        return norm
    static = (("norm_type", _float("norm_type", norm_type)),)
    if place_of(grads[0]) is not TRACE and grads[0].is_local and not grads[0].is_meta:
        places = list(range(1, len(grads) + 1))
        (norm,) = run_on_device(clip_and_norm, static, [max_norm, *grads], grads, places)
        return wrap(norm)
    with no_grad():
        pins = (*(_codes(g) for g in grads), None) if grads[0].is_global else None
        *values, norm = dispatch.run(op_of(clip_and_norm, static), (max_norm, *grads), pins)
        put_results(grads, values)
    return norm


def clip_values(bound: jax.Array, *grads: jax.Array) -> tuple[jax.Array, ...]:
    """Return the gradients with every element limited to ±bound."""
    return tuple(jnp.clip(g, jnp.asarray(-bound, g.dtype), jnp.asarray(bound, g.dtype)) for g in grads)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of the gradients to ±clip_value, in place.

    Args:
        parameters: whose gradients.
        clip_value: the bound.
        foreach: accepted for compatibility.
    """
    grads: list[Tensor] = []
    values: list[Tensor] = []
    with no_grad():
        for group in _group_by_place(_grads(parameters)):
            pins = tuple(_codes(g) for g in group) if group[0].is_global else None
            values += dispatch.run(op_of(clip_values), (float(clip_value), *group), pins)
            grads += group
        put_results(grads, values)
