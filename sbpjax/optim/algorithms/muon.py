"""`Muon` optimizer: momentum of matrices, orthogonalised by Newton-Schulz iterations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack

import jax
import jax.numpy as jnp
from jax import lax

from sbpjax.optim.check import is_on, params_value
from sbpjax.optim.optimizer import Optimizer
from sbpjax.optim.options import Implementation
from sbpjax.optim.rules import Array, Hyper, State, Updated

_ADJUST = (None, "original", "match_rms_adamw")


def orthogonalize(matrix: jax.Array, coefficients: tuple[float, float, float], steps: int, eps: float) -> jax.Array:
    """Return about ``U Vᵀ`` of a matrix ``U S Vᵀ`` by Newton-Schulz iterations in bfloat16.

    Every result is rounded to bfloat16 where PyTorch rounds it: XLA alone would keep float32 between fused operations,
    and the iteration, which does not contract, turns such differences into some percent of an update.

    Args:
        matrix: `(m, n)`.
        coefficients: ``a, b, c`` of the odd polynomial ``a x + b x³ + c x⁵`` that is applied to the singular values.
        steps: how often.
        eps: the least norm that the matrix is divided by.

    Source: Jordan et al., Muon: An optimizer for hidden layers in neural networks (2024).
    """
    a, b, c = coefficients
    x = _round_to_bfloat16(matrix.astype(jnp.float32))
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    size = _round_to_bfloat16(jnp.sqrt(jnp.sum(jnp.square(_wide(x)))))
    x = _round_to_bfloat16(_wide(x) / jnp.maximum(_wide(size), eps))
    for _ in range(steps):
        gram = _round_to_bfloat16(_matmul(x, x.T))
        mixed = _round_to_bfloat16(b * _wide(gram) + c * _matmul(gram, gram))
        x = _round_to_bfloat16(a * _wide(x) + _matmul(mixed, x))
    return x.T if tall else x


def _matmul(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.matmul(x, y, preferred_element_type=jnp.float32)


def _wide(x: jax.Array) -> jax.Array:
    return x.astype(jnp.float32)


def _round_to_bfloat16(x: jax.Array) -> jax.Array:
    return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7).astype(jnp.bfloat16)


def muon(
    p: Array, g: Array, state: State, step: Array, hyper: Hyper, *, decay: bool, nesterov: bool,
    coefficients: tuple[float, float, float], steps: int, eps: float, adjust: str | None,
) -> Updated:  # fmt: skip
    """``b += (1 - momentum) (g - b)``, ``p = (1 - lr weight_decay) p - lr r orthogonalised(b)``, r by the shape."""
    lr, momentum, b = hyper["lr"], hyper["momentum"], state["momentum_buffer"]
    b = b + (1 - momentum) * (g - b)
    u = orthogonalize(g + momentum * (b - g) if nesterov else b, coefficients, steps, eps)
    if decay:
        p = p * (1 - lr * hyper["weight_decay"])
    return p - (lr * _ratio(p.shape, adjust) * u.astype(p.dtype)).astype(p.dtype), {"momentum_buffer": b}


def _ratio(shape: tuple[int, ...], adjust: str | None) -> float:
    rows, columns = shape
    return 0.2 * math.sqrt(max(rows, columns)) if adjust == "match_rms_adamw" else math.sqrt(max(1, rows / columns))


class Muon(Optimizer):
    """Momentum, orthogonalised; for the hidden matrices of a network, beside AdamW for all other parameters.

    Args:
        params: matrices, or dicts with ``"params"`` and options of their own.
        weight_decay: decay of the weights themselves, times `lr`.
        momentum: decay rate of the running mean.
        nesterov: look ahead by one step of the mean.
        ns_coefficients: of the Newton-Schulz polynomial.
        eps: the least norm that an update is divided by.
        ns_steps: the number of its iterations.
        adjust_lr_fn: ``"original"`` (also None) multiplies the rate by ``sqrt(max(1, rows / columns))``,
            ``"match_rms_adamw"`` by ``0.2 sqrt(max(rows, columns))``, so that AdamW's rates fit.

    Raises:
        ValueError: a parameter is no matrix, or an option is out of its range.

    Example:
        >>> hidden = [p for p in model.parameters() if p.ndim == 2]
        >>> optimizer = optim.Muon(hidden, lr=1e-3, adjust_lr_fn="match_rms_adamw")
    """

    hyper = ("lr", "momentum", "weight_decay")
    _dynamic = hyper
    _not_negative = hyper
    _state_names = ("momentum_buffer",)
    _counts_steps = False
    _rule = staticmethod(muon)

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        **implementation: Unpack[Implementation],
    ):
        options = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "eps": eps}
        options |= {"ns_coefficients": ns_coefficients, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn}
        super().__init__(params, options, implementation)

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if group["adjust_lr_fn"] not in _ADJUST:
            rule = f"Adjust learning rate function {group['adjust_lr_fn']} is not supported"
            raise params_value(f"adjust_lr_fn={group['adjust_lr_fn']!r}", rule, f"one of {_ADJUST}")
        if group["ns_steps"] >= 100:
            raise params_value(f"ns_steps={group['ns_steps']}", "ns_steps must be less than 100", "ns_steps=5")
        for param in group["params"]:
            if param.ndim != 2:
                rule = f"Muon only supports 2D parameters whereas we found a parameter with size: {tuple(param.shape)}"
                raise params_value(f"{param.dtype.name}{list(param.shape)}", rule, "AdamW for the other parameters")

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        return (
            ("decay", is_on(group["weight_decay"])),
            ("nesterov", bool(group["nesterov"])),
            ("coefficients", tuple(group["ns_coefficients"])),
            ("steps", group["ns_steps"]),
            ("eps", group["eps"]),
            ("adjust", group["adjust_lr_fn"]),
        )
