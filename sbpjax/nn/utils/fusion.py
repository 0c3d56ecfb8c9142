"""Batch norm fusion for inference: fold a batch norm into the convolution or linear layer before it."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn.parameter import Parameter

M = TypeVar("M")


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and bias of a convolution fused with the batch norm after it.

    Args:
        conv_w: the convolution's weight.
        conv_b: its bias, or None.
        bn_rm: the running mean.
        bn_rv: the running variance.
        bn_eps: added to it.
        bn_w: the norm's weight, or None for ones.
        bn_b: the norm's bias, or None for zeros.
        transpose: the convolution is a transposed one, whose output channels are dim 1.
    """
    factor = (bn_rv + bn_eps).rsqrt()
    factor = factor if bn_w is None else bn_w * factor
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    bias = bn_rm * 0 if conv_b is None else conv_b
    shift = (bias - bn_rm) * factor
    shift = shift if bn_b is None else shift + bn_b
    weight = (conv_w * factor.reshape(shape)).to(conv_w.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(shift.to(conv_w.dtype), conv_w.requires_grad)


def fuse_conv_bn_eval(conv: M, bn: Any, transpose: bool = False) -> M:
    """Return a copy of a convolution fused with the batch norm after it; both in evaluation mode."""
    _check(conv, bn, "fuse_conv_bn_eval")
    fused: Any = copy.deepcopy(conv)
    with no_grad():
        statistics = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *statistics, transpose)
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a linear layer fused with the batch norm after it; arguments as of a convolution."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: M, bn: Any) -> M:
    """Return a copy of a linear layer fused with the batch norm after it; both in evaluation mode."""
    _check(linear, bn, "fuse_linear_bn_eval")
    return fuse_conv_bn_eval(linear, bn)


def _check(layer: Any, bn: Any, name: str) -> None:
    if layer.training or bn.training:
        fail("shape", f"{name}(...)", "a module in training mode", "Fusion only for eval!", "model.eval() first")
