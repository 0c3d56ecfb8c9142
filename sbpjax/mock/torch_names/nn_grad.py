"""`torch.nn.grad`: the gradients of convolutions as functions, by differentiating the convolution.

grad_input = conv2d_input(x.shape, weight, grad_output, padding=1)
grad_weight = conv2d_weight(x, weight.shape, grad_output, padding=1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sbpjax.functions import nn as F
from sbpjax.tensor import Tensor, creation
from sbpjax.tensor.tape.backward import grad
from sbpjax.tensor.tape.grad_mode import enable_grad


def _pair(name: str) -> tuple[Callable, Callable]:
    conv = getattr(F, name)

    def of_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        with enable_grad():
            x = creation.zeros(*input_size, dtype=weight.dtype, device=weight.device).requires_grad_()
            out = conv(x, weight.detach(), None, stride, padding, dilation, groups)
            return grad(out, x, grad_output)[0]

    def of_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        with enable_grad():
            weight = creation.zeros(*weight_size, dtype=input.dtype, device=input.device).requires_grad_()
            out = conv(input.detach(), weight, None, stride, padding, dilation, groups)
            return grad(out, weight, grad_output)[0]

    of_input.__name__, of_weight.__name__ = f"{name}_input", f"{name}_weight"
    of_input.__doc__ = f"Return the gradient of `{name}` by its input, of which only the shape is needed."
    of_weight.__doc__ = f"Return the gradient of `{name}` by its weight, of which only the shape is needed."
    return of_input, of_weight


conv1d_input, conv1d_weight = _pair("conv1d")
conv2d_input, conv2d_weight = _pair("conv2d")
conv3d_input, conv3d_weight = _pair("conv3d")
