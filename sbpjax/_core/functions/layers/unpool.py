"""Unpooling, power-average pooling and fractional max pooling."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions.random import rand
from sbpjax._core.ops.conv import unpool as ops
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.dispatch import apply
from sbpjax.sbp.algebra import broadcast


def _fractional(fn: Any, n: int, input: Tensor, kernel_size, output_size, output_ratio, return_indices, samples):
    if output_size is None and output_ratio is None:
        rule = f"{fn.__name__} requires specifying either an output_size or an output_ratio"
        fail("value", f"{fn.__name__}(...)", "neither", rule, "output_ratio=0.5")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        output_size = tuple(int(s * r) for s, r in zip(input.shape[-n:], ratios))
    if samples is None:
        batch = 1 if input.ndim == n + 1 else input.shape[0]
        where = {"placement": input.placement, "sbp": [broadcast] * len(input.sbp)} if input.is_global else {}
        samples = rand(batch, input.shape[-n - 1], n, dtype=input.dtype, **where)
    options = {"kernel_size": kernel_size, "output_size": output_size, "return_indices": bool(return_indices)}
    return apply(fn, input, samples, **options)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return maxima of windows of `(N, C, H, W)` that begin at random, increasing places.

    Args:
        input: `(N, C, H, W)` or `(C, H, W)`.
        kernel_size: size of the window.
        output_size: sizes of the result; or
        output_ratio: its share of the input's sizes.
        return_indices: return also the flat place of each maximum.
        _random_samples: `(N, C, 2)` numbers in [0, 1) instead of random ones.
    """
    return _fractional(
        ops.fractional_max_pool2d, 2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Return maxima of windows of `(N, C, D, H, W)`; arguments as in `fractional_max_pool2d`."""
    return _fractional(
        ops.fractional_max_pool3d, 3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
