"""Rotary position embeddings: rotate pairs of features by angles that grow with the position.

Pair i of a head of size C is the numbers i and i + C/2; at position t it is turned by t · f_i, with
f_i = theta^(-2i / C). A scaling changes the f_i, for contexts longer than those of the first training:

    linear    all divided by `factor`
    llama3    those with a wave longer than `original_max_position_embeddings` / `low_freq_factor` divided by `factor`,
              those with one shorter than … / `high_freq_factor` kept, a ramp between
    yarn      a ramp over i between kept and divided, and cosines and sines times 0.1 ln(factor) + 1

Source: Su et al., RoFormer, arXiv:2104.09864; Peng et al., YaRN, arXiv:2309.00071; the Llama 3.1 release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import sbpjax as flow

# By ``rope_type``: the keys that must be there, and those that may.
SCALINGS = {
    "default": ((), ()),
    "linear": (("factor",), ()),
    "llama3": (("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"), ()),
    "yarn": (
        ("factor", "original_max_position_embeddings"),
        ("beta_fast", "beta_slow", "attention_factor", "truncate"),
    ),
}


def rope_frequencies(head_dim: int, theta: float, scaling: Mapping[str, Any] | None = None) -> tuple[np.ndarray, float]:
    """Return the angles per position, and the factor of cosines and sines.

    Args:
        head_dim: C, even.
        theta: the base.
        scaling: a ``rope_type`` of `SCALINGS`, with its keys; None for none.

    Returns:
        ``(C / 2,)`` float32 in radians, and a number.

    Example:
        >>> flow.models.layers.rope_frequencies(4, 10000.0)
        (array([1.  , 0.01], dtype=float32), 1.0)
    """
    steps = np.arange(0, head_dim, 2, dtype=np.float64)
    own = 1.0 / theta ** (steps / head_dim)  # (C / 2,)
    kind = "default" if scaling is None else scaling["rope_type"]
    if scaling is None or kind == "default":
        return own.astype(np.float32), 1.0
    divided = own / scaling["factor"]
    if kind == "linear":
        return divided.astype(np.float32), 1.0
    if kind == "llama3":
        return _llama3(own, divided, scaling).astype(np.float32), 1.0
    found = _yarn(own, divided, head_dim, theta, scaling).astype(np.float32)
    factor = scaling.get("attention_factor")
    if factor is None:
        factor = 0.1 * math.log(scaling["factor"]) + 1.0 if scaling["factor"] > 1 else 1.0
    return found, float(factor)


def _llama3(own: np.ndarray, divided: np.ndarray, scaling: Mapping[str, Any]) -> np.ndarray:
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * own / (2 * math.pi)  # in the whole first context
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1 - kept) * divided + kept * own


def _yarn(own: np.ndarray, divided: np.ndarray, head_dim: int, theta: float, scaling: Mapping[str, Any]) -> np.ndarray:
    context = scaling["original_max_position_embeddings"]

    def pair_of_rotations(times: float) -> float:
        return head_dim * math.log(context / (times * 2 * math.pi)) / (2 * math.log(theta))

    first, last = pair_of_rotations(scaling.get("beta_fast", 32)), pair_of_rotations(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_dim - 1)
    ramp = np.clip((np.arange(len(own)) - first) / max(last - first, 0.001), 0.0, 1.0)
    return (1 - ramp) * own + ramp * divided


def rope_cos_sin(
    positions: flow.Tensor, head_dim: int, theta: float, scaling: Mapping[str, Any] | None = None
) -> tuple[flow.Tensor, flow.Tensor]:
    """Return cosines and sines of the angles at some positions.

    Args:
        positions: `(T,)`, or `(B, T)` where sequences differ.
        head_dim: C, or how many numbers of a head are turned.
        theta: the base.
        scaling: see `rope_frequencies`.

    Returns:
        Two tensors ``(T, C / 2)`` or ``(B, 1, T, C / 2)``, float32, with the layout of the positions.

    Example:
        >>> cos, sin = flow.models.layers.rope_cos_sin(flow.arange(3), 4, 10000.0)
        >>> cos.shape
        sbpjax.Size([3, 2])
    """
    steps, factor = rope_frequencies(head_dim, theta, scaling)
    if positions.is_global:
        whole = [flow.sbp.broadcast] * len(positions.placement.hierarchy)
        each = flow.tensor(steps, placement=positions.placement, sbp=whole)
    else:
        each = flow.tensor(steps)
    angles = positions.float().unsqueeze(-1) * each  # (..., T, C / 2)
    if positions.ndim == 2:
        angles = angles.unsqueeze(1)
    return angles.cos() * factor, angles.sin() * factor


def apply_rope(x: flow.Tensor, cos: flow.Tensor, sin: flow.Tensor) -> flow.Tensor:
    """Return heads with their pairs turned.

    Args:
        x: `(B, H, T, C)`; any split but of C.
        cos: of `rope_cos_sin`. If it is of fewer numbers than C, as of Phi, the first ones of a head are turned.
        sin: of `rope_cos_sin`.

    Returns:
        The shape, dtype and layout of `x`.

    Example:
        >>> cos, sin = flow.models.layers.rope_cos_sin(flow.arange(2), 2, 10000.0)
        >>> flow.models.layers.apply_rope(flow.ones(1, 1, 2, 2), cos, sin)[0, 0, 0].tolist()
        [1.0, 1.0]
    """
    half = cos.shape[-1]
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    a, b, kept = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    turned = [a * cos - b * sin, b * cos + a * sin]
    return flow.cat(turned if 2 * half == x.shape[-1] else [*turned, kept], dim=-1)
