"""Quantisation-aware training: range observers, fake quantisation, and convolutions with both.

    scale, zero_point = MinMaxObserver()(weight)
    weight = FakeQuantization()(weight, scale, zero_point)      # float32 with 256 different values

Worked case, symmetric with 8 bits: values in [-2.54, 1] have scale 2.54 / 127 = 0.02; 0.031 is round(1.55) = 2 steps,
so 0.04. The gradient passes through the rounding as if it were not there, within the range.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from sbpjax._core import functions
from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation
from sbpjax._core.tensor.dispatch.dispatch import apply
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn.layers.conv import Conv1d, Conv2d, Conv3d
from sbpjax.nn.module import Module

_FORMULAS, _SCHEMES = ("google", "cambricon"), ("symmetric", "affine")


def _check(operation: str, formula: str, bits: int, scheme: str) -> None:
    if formula not in _FORMULAS or scheme not in _SCHEMES or not 2 <= bits <= 16:
        seen = f"quantization_formula={formula!r}, quantization_bit={bits}, quantization_scheme={scheme!r}"
        rule = f"the formula is one of {_FORMULAS}, the scheme one of {_SCHEMES}, bits are in [2, 16]"
        fail("value", operation, seen, rule, "quantization_formula='google', quantization_bit=8")


def _scale_of(low: Any, high: Any, formula: str, bits: int, scheme: str) -> tuple[Any, Any]:
    """Return the scale (cambricon: its binary exponent) and zero point of a range."""
    largest = jnp.maximum(jnp.abs(low), jnp.abs(high))
    if formula == "cambricon":
        exponent = jnp.floor(jnp.log2(largest)) - (bits - 2)
        return exponent, jnp.zeros_like(exponent)
    if scheme == "symmetric":
        scale = largest / (2 ** (bits - 1) - 1)
        return scale, jnp.zeros_like(scale)
    low, high = jnp.minimum(low, 0), jnp.maximum(high, 0)
    scale = (high - low) / (2**bits - 1)
    return scale, -jnp.round(low / scale)


def _observe_rows(x: Any, /, formula: str, bits: int, scheme: str, per_layer: bool) -> tuple[Any, Any]:
    rows = x.reshape(1, -1) if per_layer else x.reshape(x.shape[0], -1)
    return _scale_of(rows.min(1), rows.max(1), formula, bits, scheme)


def _steps(x: Any, scale: Any, zero_point: Any, formula: str, bits: int, scheme: str) -> tuple[Any, Any, Any]:
    """Return x in whole steps within the range, the size of a step, and the zero point; all of x's rank."""
    shape = (-1,) + (1,) * (x.ndim - 1) if scale.size > 1 else (1,) * x.ndim
    scale, zero_point = scale.reshape(shape).astype(x.dtype), zero_point.reshape(shape).astype(x.dtype)
    if formula == "cambricon":
        scale = jnp.exp2(scale)
    if scheme == "affine" and formula == "google":
        low, high = 0, 2**bits - 1
    else:
        high = 2 ** (bits - 1) - 1
        low = -high - (formula == "google")
    return jnp.clip(jnp.round(x / scale) + zero_point, low, high), scale, zero_point


def _quantize_steps(x: Any, scale: Any, zero_point: Any, /, formula: str, bits: int, scheme: str) -> Any:
    return _steps(x, scale, zero_point, formula, bits, scheme)[0]


def _fake_quantize(x: Any, scale: Any, zero_point: Any, /, formula: str, bits: int, scheme: str) -> Any:
    still = lax.stop_gradient(x)
    steps, scale, zero_point = (lax.stop_gradient(v) for v in _steps(still, scale, zero_point, formula, bits, scheme))
    return (steps - zero_point) * scale + (x - still)  # the gradient is that of x


class _Options(Module):
    """Base of the modules of quantisation."""

    def __init__(
        self,
        quantization_formula: str = "google",
        quantization_bit: int = 8,
        quantization_scheme: str = "symmetric",
    ):
        super().__init__()
        _check(f"{type(self).__name__}(...)", quantization_formula, quantization_bit, quantization_scheme)
        self.quantization_formula = quantization_formula
        self.quantization_bit, self.quantization_scheme = quantization_bit, quantization_scheme

    def _static(self) -> dict[str, Any]:
        return {
            "formula": self.quantization_formula,
            "bits": self.quantization_bit,
            "scheme": self.quantization_scheme,
        }


class MinMaxObserver(_Options):
    """Scale and zero point of the range of a tensor, of the whole or per slice of dim 0.

    Args:
        quantization_formula: ``"google"``, or ``"cambricon"`` whose scales are powers of two (given as exponents).
        quantization_bit: bits of a quantised number.
        quantization_scheme: ``"symmetric"`` around 0, or ``"affine"``.
        per_layer_quantization: one range for the whole tensor.
    """

    def __init__(
        self,
        quantization_formula: str = "google",
        quantization_bit: int = 8,
        quantization_scheme: str = "symmetric",
        per_layer_quantization: bool = True,
    ):
        super().__init__(quantization_formula, quantization_bit, quantization_scheme)
        self.per_layer_quantization = per_layer_quantization

    def forward(self, input: Tensor) -> tuple[Tensor, Tensor]:
        """Return `(scale, zero_point)`, each `(1,)` or of dim 0's size."""
        return apply(_observe_rows, input.detach(), **self._static(), per_layer=self.per_layer_quantization)


class MovingAverageMinMaxObserver(_Options):
    """Scale and zero point of a moving average of the observed range.

    Args:
        stop_update_after_iters: freeze the range after this number of calls in training.
        quantization_formula: ``"google"`` or ``"cambricon"``.
        quantization_bit: bits of a quantised number.
        quantization_scheme: ``"symmetric"`` or ``"affine"``.
        momentum: weight of the range so far.
    """

    def __init__(
        self,
        stop_update_after_iters: int = 1,
        quantization_formula: str = "google",
        quantization_bit: int = 8,
        quantization_scheme: str = "symmetric",
        momentum: float = 0.95,
    ):
        super().__init__(quantization_formula, quantization_bit, quantization_scheme)
        self.stop_update_after_iters, self.momentum = stop_update_after_iters, momentum
        self.register_buffer("moving_max", creation.zeros(1))
        self.register_buffer("moving_min", creation.zeros(1))
        self.register_buffer("current_train_step", creation.zeros(1, dtype=dtypes.int64))

    def forward(self, input: Tensor, current_train_step: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return `(scale, zero_point)`, each `(1,)`.

        Args:
            input: the tensor to observe.
            current_train_step: the step, if the module does not count itself.
        """
        if self.training:
            with no_grad():
                step = self.current_train_step if current_train_step is None else current_train_step
                values = input.detach()
                self.moving_max.copy_(self._move_average(self.moving_max, values.max().reshape(1), step))
                self.moving_min.copy_(self._move_average(self.moving_min, values.min().reshape(1), step))
                if current_train_step is None:
                    self.current_train_step.add_(1)
        return apply(_range_scale, self.moving_min, self.moving_max, **self._static())

    def _move_average(self, old: Tensor, new: Tensor, step: Tensor) -> Tensor:
        followed = functions.where(step == 0, new, old * self.momentum + new * (1 - self.momentum))
        return functions.where(step < self.stop_update_after_iters, followed, old)


def _range_scale(low: Any, high: Any, /, formula: str, bits: int, scheme: str) -> tuple[Any, Any]:
    return _scale_of(low, high, formula, bits, scheme)


class FakeQuantization(_Options):
    """Numbers rounded as a quantised model will round them, still as floats; the gradient passes through.

    Args:
        quantization_formula: ``"google"`` or ``"cambricon"``.
        quantization_bit: bits of a quantised number.
        quantization_scheme: ``"symmetric"`` or ``"affine"``.
    """

    def forward(self, input: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
        """Return the rounded numbers, given a scale and a zero point from an observer."""
        return apply(_fake_quantize, input, scale, zero_point, **self._static())


class Quantization(FakeQuantization):
    """Numbers in whole steps of a scale, as floats.

    Args:
        quantization_formula: ``"google"`` or ``"cambricon"``.
        quantization_bit: bits of a quantised number.
        quantization_scheme: ``"symmetric"`` or ``"affine"``.
    """

    def forward(self, input: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
        """Return the numbers of steps, given a scale and a zero point from an observer."""
        return apply(_quantize_steps, input, scale, zero_point, **self._static())


class _Qat:
    """Base of quantisation-aware convolutions; list it before the convolution."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        quantization_formula: str = "google",
        quantization_bit: int = 8,
        quantization_scheme: str = "symmetric",
        weight_quant_per_layer: bool = True,
        input_quant_momentum: float = 0.95,
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode)  # type: ignore[call-arg]
        how = (quantization_formula, quantization_bit, quantization_scheme)
        self.weight_min_max_observer = MinMaxObserver(*how, weight_quant_per_layer)
        self.input_min_max_observer = MovingAverageMinMaxObserver(2**31, *how, input_quant_momentum)
        self.fake_quantizer = FakeQuantization(*how)

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution of the rounded input with the rounded weight."""
        self_: Any = self
        x = self.fake_quantizer(input, *self.input_min_max_observer(input))
        weight = self.fake_quantizer(self_.weight, *self.weight_min_max_observer(self_.weight))
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self_._spatial - 1]
        x, padding = self_._pad_input(x)
        return convolve(x, weight, self_.bias, self_.stride, padding, self_.dilation, self_.groups)


class QatConv1d(_Qat, Conv1d):
    """Convolution of `(N, C, L)` with fake quantisation of input and weight."""


class QatConv2d(_Qat, Conv2d):
    """Convolution of `(N, C, H, W)` with fake quantisation of input and weight."""


class QatConv3d(_Qat, Conv3d):
    """Convolution of `(N, C, D, H, W)` with fake quantisation of input and weight."""
