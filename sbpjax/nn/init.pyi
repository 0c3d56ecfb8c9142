"""Written by `make stubs` from the live package; do not edit."""
# Initialisers: fill a tensor in place with a constant or with random numbers of a given distribution.

import __future__
import builtins
import typing
import sbpjax._core.tensor.handle.types as _types
from sbpjax._core.tensor.creation.generator import Generator as _Generator
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor
from sbpjax.sbp.placement import placement as _placement
from sbpjax.sbp.algebra import sbp as _sbp

NoReturn: typing._SpecialForm
from sbpjax._core.tensor.handle.tensor import Tensor as Tensor
annotations: __future__._Feature
def bias_(tensor: _Tensor | None, fan_in: builtins.int) -> None:
    """Fill a layer's bias uniformly in ±1/sqrt(fan_in), as linear and convolution layers start; None has none."""
broadcast: _sbp
def by_inverse_(input: _Tensor, low: builtins.float, high: builtins.float, std: builtins.float, mean: builtins.float, a: builtins.float, b: builtins.float, generator: _Generator | None = None) -> _Tensor:
    """Write normal floats limited to [a, b], by the inverse of erf at uniform numbers in [low, high).

    Args:
        low: erf's value at a.
        high: erf's value at b.
        std: their deviation before the limits.
        mean: their mean before the limits.
        a: the least value.
        b: the greatest value.
        generator: the source of the numbers.
    """
def calc_fan(shape: builtins.tuple[builtins.int, ...], mode: builtins.str, data_format: builtins.str) -> builtins.int | builtins.float:
    """Return how many inputs or outputs one element of a weight of `shape` connects to; OneFlow's function.

    Args:
        shape: the weight's sizes, output channels first.
        mode: ``"fan_in"``, ``"fan_out"`` or ``"fan_avg"``, their mean.
        data_format: ``"NCHW"`` and so on: the input channels are dim 1; ``"NHWC"`` and so on: the last dim.
    """
def calculate_gain(nonlinearity: builtins.str, param: builtins.float | None = None) -> builtins.float:
    """Return the factor that keeps variance through a nonlinearity.

    Args:
        nonlinearity: ``"linear"``, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, ``"selu"``, ``"conv2d"``.
        param: the negative slope of ``"leaky_relu"``.
    """
def constant(tensor: _Tensor, val: builtins.float) -> _Tensor:
    """Fill with one number."""
def constant_(tensor: _Tensor, val: builtins.float) -> _Tensor:
    """Fill with one number."""
def dirac(tensor: _Tensor, groups: builtins.int = 1) -> _Tensor:
    """Make a convolution's weight preserve as many input channels as possible, per group."""
def dirac_(tensor: _Tensor, groups: builtins.int = 1) -> _Tensor:
    """Make a convolution's weight preserve as many input channels as possible, per group."""
def eye(n: builtins.int, m: builtins.int | None = None, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return an ``n`` × ``m`` tensor with ones on the diagonal.

    Args:
        n: the rows.
        m: the columns; as many as rows if None.
    """
def eye_(tensor: _Tensor) -> _Tensor:
    """Make a matrix the identity."""
from sbpjax._core.ops.dims import fail as fail
def fans(tensor: _Tensor, data_format: builtins.str = 'NCHW') -> builtins.tuple[builtins.int, builtins.int]:
    """Return (fan_in, fan_out) of a weight `(out, in, kernel...)`, or `(out, kernel..., in)` if so formatted."""
def kaiming_normal(tensor: _Tensor, a: builtins.float = 0, mode: builtins.str = 'fan_in', nonlinearity: builtins.str = 'leaky_relu', generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
    """Fill normally with deviation gain / sqrt(fan); arguments as in `kaiming_uniform_`."""
def kaiming_normal_(tensor: _Tensor, a: builtins.float = 0, mode: builtins.str = 'fan_in', nonlinearity: builtins.str = 'leaky_relu', generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
    """Fill normally with deviation gain / sqrt(fan); arguments as in `kaiming_uniform_`."""
def kaiming_uniform(tensor: _Tensor, a: builtins.float = 0, mode: builtins.str = 'fan_in', nonlinearity: builtins.str = 'leaky_relu', generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
    """Fill uniformly in ±gain * sqrt(3 / fan).

    Args:
        tensor: the weight.
        a: the negative slope of the leaky relu after the layer.
        mode: ``"fan_in"`` keeps the variance forwards, ``"fan_out"`` backwards.
        nonlinearity: the activation after the layer.
        generator: the random generator.
        data_format: ``"NCHW"`` for a weight `(out, in, kernel...)`, ``"NHWC"`` for `(out, kernel..., in)`.

    Source: He et al., Delving Deep into Rectifiers (2015).
    """
def kaiming_uniform_(tensor: _Tensor, a: builtins.float = 0, mode: builtins.str = 'fan_in', nonlinearity: builtins.str = 'leaky_relu', generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
    """Fill uniformly in ±gain * sqrt(3 / fan).

    Args:
        tensor: the weight.
        a: the negative slope of the leaky relu after the layer.
        mode: ``"fan_in"`` keeps the variance forwards, ``"fan_out"`` backwards.
        nonlinearity: the activation after the layer.
        generator: the random generator.
        data_format: ``"NCHW"`` for a weight `(out, in, kernel...)`, ``"NHWC"`` for `(out, kernel..., in)`.

    Source: He et al., Delving Deep into Rectifiers (2015).
    """
from sbpjax._core.tensor.tape.grad_mode import no_grad as no_grad
def normal(mean: builtins.float = 0.0, std: builtins.float = 1.0, size: _types.IntOrInts | None = None, *, generator: _Generator | None = None, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return normal floats, of a size with numbers for mean and std, or of the shape of tensors given for them.

    Args:
        mean: a number, or a tensor.
        std: a number, or a tensor.
        size: the shape, where both are numbers.
    """
def normal_(tensor: _Tensor, mean: builtins.float = 0.0, std: builtins.float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with normal numbers."""
def ones_(tensor: _Tensor) -> _Tensor:
    """Fill with ones."""
def orthogonal(tensor: _Tensor, gain: builtins.float = 1, generator: _Generator | None = None) -> _Tensor:
    """Fill with a (semi-)orthogonal matrix; all dims after the first count as one.

    Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks (2014).
    """
def orthogonal_(tensor: _Tensor, gain: builtins.float = 1, generator: _Generator | None = None) -> _Tensor:
    """Fill with a (semi-)orthogonal matrix; all dims after the first count as one.

    Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks (2014).
    """
def sparse(tensor: _Tensor, sparsity: builtins.float, std: builtins.float = 0.01, generator: _Generator | None = None) -> _Tensor:
    """Fill a matrix normally, with the same share of zeros at random places in every column."""
def sparse_(tensor: _Tensor, sparsity: builtins.float, std: builtins.float = 0.01, generator: _Generator | None = None) -> _Tensor:
    """Fill a matrix normally, with the same share of zeros at random places in every column."""
def trunc_normal_(tensor: _Tensor, mean: builtins.float = 0.0, std: builtins.float = 1.0, a: builtins.float = -2.0, b: builtins.float = 2.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with normal numbers, truncated to [a, b]."""
def uniform(tensor: _Tensor, a: builtins.float = 0.0, b: builtins.float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with numbers uniform in [a, b)."""
def uniform_(tensor: _Tensor, a: builtins.float = 0.0, b: builtins.float = 1.0, generator: _Generator | None = None) -> _Tensor:
    """Fill with numbers uniform in [a, b)."""
def xavier_normal(tensor: _Tensor, gain: builtins.float = 1.0, generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
    """Fill normally with deviation gain * sqrt(2 / (fan_in + fan_out))."""
def xavier_normal_(tensor: _Tensor, gain: builtins.float = 1.0, generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
    """Fill normally with deviation gain * sqrt(2 / (fan_in + fan_out))."""
def xavier_uniform(tensor: _Tensor, gain: builtins.float = 1.0, generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
    """Fill uniformly in ±gain * sqrt(6 / (fan_in + fan_out)).

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (2010).
    """
def xavier_uniform_(tensor: _Tensor, gain: builtins.float = 1.0, generator: _Generator | None = None, *, data_format: builtins.str = 'NCHW') -> _Tensor:
    """Fill uniformly in ±gain * sqrt(6 / (fan_in + fan_out)).

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (2010).
    """
def zeros_(tensor: _Tensor) -> _Tensor:
    """Fill with zeros."""
