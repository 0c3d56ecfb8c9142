"""Activation functions of tensors, with PyTorch's signatures; `sbpjax.ops.activation` holds the formulas."""

from __future__ import annotations

from typing import Any

from sbpjax.ops import activation, elementwise, random
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor
from sbpjax.tensor import dtype as dtypes
from sbpjax.tensor.dispatch import apply, run, unary
from sbpjax.tensor.generator import default_generator, generator_or_default
from sbpjax.tensor.inplace import inplace as write_into
from sbpjax.tensor.oneflow_arguments import take_oneflow
from sbpjax.tensor.op import op_of

_RELU = op_of(activation.relu)
_RELU6 = op_of(activation.relu6)
_SELU = op_of(activation.selu)
_SILU = op_of(activation.silu)
_MISH = op_of(activation.mish)
_HARDSWISH = op_of(activation.hardswish)
_HARDSIGMOID = op_of(activation.hardsigmoid)
_LOGSIGMOID = op_of(activation.logsigmoid)
_SOFTSIGN = op_of(activation.softsign)
_TANHSHRINK = op_of(activation.tanhshrink)
_QUICK_GELU = op_of(activation.quick_gelu)
_SIGMOID = op_of(activation.sigmoid)
_TANH = op_of(elementwise.tanh)


def relu(input: Any = None, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return max(x, 0)."""
    input = x if input is None else input  # OneFlow calls it x
    return write_into(input, _RELU) if inplace else unary(_RELU, input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return min(max(x, 0), 6)."""
    return write_into(input, _RELU6) if inplace else unary(_RELU6, input)


def selu(input: Any = None, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return the self-normalising elu of x."""
    input = x if input is None else input  # OneFlow calls it x
    return write_into(input, _SELU) if inplace else unary(_SELU, input)


def silu(input: Any = None, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return x * sigmoid(x)."""
    input = x if input is None else input  # OneFlow calls it x
    return write_into(input, _SILU) if inplace else unary(_SILU, input)


def mish(input: Any = None, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return x * tanh(softplus(x))."""
    input = x if input is None else input  # OneFlow calls it x
    return write_into(input, _MISH) if inplace else unary(_MISH, input)


def hardswish(input: Any = None, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return x * min(max(x + 3, 0), 6) / 6."""
    input = x if input is None else input  # OneFlow calls it x
    return write_into(input, _HARDSWISH) if inplace else unary(_HARDSWISH, input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return min(max(x + 3, 0), 6) / 6."""
    return write_into(input, _HARDSIGMOID) if inplace else unary(_HARDSIGMOID, input)


def logsigmoid(input: Any = None, *, x: Any = None) -> Tensor:
    """Return log(1 / (1 + e**-x)), without overflow."""
    input = x if input is None else input  # OneFlow calls it x
    return unary(_LOGSIGMOID, input)


def softsign(input: Any = None, *, x: Any = None) -> Tensor:
    """Return x / (1 + |x|)."""
    input = x if input is None else input  # OneFlow calls it x
    return unary(_SOFTSIGN, input)


def tanhshrink(input: Tensor) -> Tensor:
    """Return x - tanh(x)."""
    return unary(_TANHSHRINK, input)


def quick_gelu(input: Any = None, *, x: Any = None) -> Tensor:
    """Return x * sigmoid(1.702 x)."""
    input = x if input is None else input  # OneFlow calls it x
    return unary(_QUICK_GELU, input)


def sigmoid(input: Any = None, *, x: Any = None) -> Tensor:
    """Return 1 / (1 + e**-x)."""
    input = x if input is None else input  # OneFlow calls it x
    return unary(_SIGMOID, input)


def tanh(input: Any = None, *, x: Any = None) -> Tensor:
    """Return the hyperbolic tangent."""
    input = x if input is None else input  # OneFlow calls it x
    return unary(_TANH, input)


def leaky_relu(input: Any = None, negative_slope: float = 0.01, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return x where positive, else negative_slope * x."""
    input = x if input is None else input  # OneFlow calls it x
    op = op_of(activation.leaky_relu, (("negative_slope", float(negative_slope)),))
    return write_into(input, op) if inplace else run(op, (input,))


def hardtanh(
    input: Any = None, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, *, x: Any = None
) -> Tensor:
    """Return x limited to [min_val, max_val]."""
    input = x if input is None else input  # OneFlow calls it x
    op = op_of(
        activation.hardtanh,
        (
            ("min_val", float(min_val)),
            ("max_val", float(max_val)),
        ),
    )
    return write_into(input, op) if inplace else run(op, (input,))


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above `threshold`, else `value`."""
    op = op_of(
        activation.threshold,
        (
            ("threshold", float(threshold)),
            ("value", float(value)),
        ),
    )
    return write_into(input, op) if inplace else run(op, (input,))


def celu(input: Any = None, alpha: float = 1.0, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return max(x, 0) + min(0, alpha * (e**(x / alpha) - 1))."""
    input = x if input is None else input  # OneFlow calls it x
    op = op_of(activation.celu, (("alpha", float(alpha)),))
    return write_into(input, op) if inplace else run(op, (input,))


def elu(input: Any = None, alpha: float = 1.0, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return x where positive, else alpha * (e**x - 1)."""
    input = x if input is None else input  # OneFlow calls it x
    op = op_of(activation.elu, (("alpha", float(alpha)),))
    return write_into(input, op) if inplace else run(op, (input,))


def softplus(input: Any = None, beta: float = 1.0, threshold: float = 20.0, *, x: Any = None) -> Tensor:
    """Return log(1 + e**(beta x)) / beta, and x where beta x is above the threshold."""
    input = x if input is None else input  # OneFlow calls it x
    return apply(
        activation.softplus,
        (input,),
        (
            ("beta", float(beta)),
            ("threshold", float(threshold)),
        ),
    )


def hardshrink(input: Any = None, lambd: float = 0.5, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return x, and 0 where |x| <= lambd."""
    input = x if input is None else input  # OneFlow calls it x
    op = op_of(activation.hardshrink, (("lambd", float(lambd)),))
    return write_into(input, op) if inplace else run(op, (input,))


def softshrink(input: Any = None, lambd: float = 0.5, inplace: bool = False, *, x: Any = None) -> Tensor:
    """Return x moved by `lambd` towards 0, and 0 where |x| <= lambd."""
    input = x if input is None else input  # OneFlow calls it x
    op = op_of(activation.softshrink, (("lambd", float(lambd)),))
    return write_into(input, op) if inplace else run(op, (input,))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return a * sigmoid(b), with a and b the halves of x along `dim`."""
    return apply(activation.glu, (input,), (("dim", dim),))


def gelu(input: Any = None, approximate: str = "none", *, x: Any = None) -> Tensor:
    """Return x * Φ(x), with Φ the normal distribution function; by erf, or with ``"tanh"`` by the tanh formula."""
    input = x if input is None else input  # OneFlow calls it x
    return apply(activation.gelu, (input,), (("approximate", approximate),))


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where positive, else weight * x, with one slope or one per channel (dim 1)."""
    return apply(activation.prelu, (input, weight))


def _default_dim(ndim: int) -> int:
    return 0 if ndim in (0, 1, 3) else 1


def _normalised(fn: Any, input: Tensor, dim: int | None, dtype: Any) -> Tensor:
    if dim is None:
        dim = _default_dim(input.ndim)
    return apply(fn, (input,), (("dim", dim), ("dtype", dtypes.np_of(dtype))))


def softmax(
    input: Any = None, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None, *, x: Any = None
) -> Tensor:
    """Return e**x normalised to sum 1 along `dim`.

    Args:
        input: any shape; any sbp. A split of `dim` costs a reduction of the maximum and one of the sum.
        dim: the dim of the classes.
        _stacklevel: accepted for compatibility.
        dtype: cast to it first.
        x: OneFlow's name of the input.
    """
    input = x if input is None else input  # OneFlow calls it x
    return _normalised(activation.softmax, input, dim, dtype)


def log_softmax(
    input: Any = None, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None, *, x: Any = None
) -> Tensor:
    """Return the logarithm of the softmax along `dim`; arguments as in `softmax`."""
    input = x if input is None else input  # OneFlow calls it x
    return _normalised(activation.log_softmax, input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the softmax of -x; arguments as in `softmax`."""
    return _normalised(activation.softmin, input, dim, dtype)


def relu_(input: Tensor) -> Tensor:
    """Apply `relu` in place."""
    return relu(input, inplace=True)


def square_relu(input: Tensor) -> Tensor:
    """Return max(x, 0)²."""
    return apply(_square_relu, (input,))


def _square_relu(x: Any, /) -> Any:
    positive = activation.relu(x)
    return positive * positive


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
        return leaky_relu(input, (lower + upper) / 2, inplace)
    op = op_of(_random_slopes, (("lower", float(lower)), ("upper", float(upper))))
    key = default_generator.key()
    return write_into(input, op, (key,)) if inplace else run(op, (input, key))


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


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """Write `rrelu` of x into x."""
    return rrelu(input, lower, upper, training, inplace=True)


def selu_(input: Tensor) -> Tensor:
    """Write `selu` of x into x."""
    return selu(input, inplace=True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Write `elu` of x into x."""
    return elu(input, alpha, inplace=True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Write `celu` of x into x."""
    return celu(input, alpha, inplace=True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Write `leaky_relu` of x into x."""
    return leaky_relu(input, negative_slope, inplace=True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Write `hardtanh` of x into x."""
    return hardtanh(input, min_val, max_val, inplace=True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """Write `threshold` of x into x."""
    return _threshold(input, threshold, value, inplace=True)


_threshold = threshold


take_oneflow(globals(), "nn.functional.")
