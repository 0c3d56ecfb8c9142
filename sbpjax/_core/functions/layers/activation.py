"""Random activations: `rrelu` and `gumbel_softmax`; the others are in `_core.functions.rows.activations`."""

from __future__ import annotations

from typing import Any

from sbpjax._core.ops.dims import fail
from sbpjax._core.ops.layers import activation
from sbpjax._core.ops.randoms import random
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator, generator_or_default
from sbpjax._core.tensor.dispatch.dispatch import run
from sbpjax._core.tensor.dispatch.op import op_of
from sbpjax._core.tensor.storage.inplace import inplace as write_into


def _random_slopes(x: Any, key: Any, /, lower: float, upper: float) -> Any:
    return random.rrelu(key, x, lower=lower, upper=upper)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return x where positive, else x times a slope: random in [lower, upper) in training, else their mean.

    Args:
        input: any shape; any sbp: the slopes do not depend on it.
        lower: the smallest slope.
        upper: the largest slope.
        training: draw slopes.
        inplace: write into the input.
    """
    if lower > upper:
        rule = f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}"
        fail("shape", "rrelu(...)", f"lower={lower}, upper={upper}", rule, "rrelu(x, 1 / 8, 1 / 3)")
    if not training:
        op = op_of(activation.leaky_relu, (("negative_slope", (lower + upper) / 2),))
        return write_into(input, op) if inplace else run(op, (input,))
    op = op_of(_random_slopes, (("lower", float(lower)), ("upper", float(upper))))
    key = default_generator.key()
    return write_into(input, op, (key,)) if inplace else run(op, (input, key))


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """Write `rrelu` of x into x."""
    return rrelu(input, lower, upper, training, inplace=True)


def _gumbel(x: Any, key: Any, /, tau: float, hard: bool, dim: int) -> Any:
    return random.gumbel_softmax(key, x, tau=tau, hard=hard, dim=dim)


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1, *, generator: Any = None
) -> Tensor:
    """Return a sample of a relaxed categorical distribution: the softmax of ``(logits + noise) / tau``.

    Args:
        logits: any shape.
        tau: the temperature.
        hard: return one-hot samples whose gradient is that of the soft ones.
        eps: accepted for compatibility, as in PyTorch; it has no effect.
        dim: the dim of the classes.
        generator: where the noise comes from.
    """
    op = op_of(_gumbel, (("tau", float(tau)), ("hard", hard), ("dim", dim)))
    return run(op, (logits, generator_or_default(generator).key()))
