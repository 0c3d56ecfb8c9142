"""Initialisers: fill a tensor in place with a constant or with random numbers of a given distribution.

`fans` gives the number of inputs and outputs that one element of a weight connects to; `xavier_*` and `kaiming_*` scale
by them so that signals keep their variance from layer to layer. All of them leave the tape alone and return the tensor.
Random ones draw from sbpjax's generator, whose numbers depend on the element's place in the logical tensor, not on the
layout.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from sbpjax._core.functions.random import by_inverse_
from sbpjax._core.ops.dims import fail
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import creation, from_data
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.sbp.algebra import broadcast


def _refuse(operation: str, tensor: Tensor, rule: str, fix: str) -> NoReturn:
    fail("value", operation, f"a tensor of shape {list(tensor.shape)}", rule, fix)


def fans(tensor: Tensor, data_format: str = "NCHW") -> tuple[int, int]:
    """Return (fan_in, fan_out) of a weight `(out, in, kernel...)`, or `(out, kernel..., in)` if so formatted."""
    if tensor.ndim < 2:
        _refuse(
            "fans of a weight",
            tensor,
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
            "init.normal_ or init.zeros_ for biases and norms",
        )
    last = data_format.startswith("N") and data_format.endswith("C")
    if not last and data_format and not data_format.startswith("NC"):
        rule = 'data_format is "N...C" or "NC..."'
        fail("value", "fans of a weight", f"data_format={data_format!r}", rule, 'data_format="NCHW"')
    inputs, cells = (tensor.shape[-1], tensor.shape[1:-1]) if last else (tensor.shape[1], tensor.shape[2:])
    return inputs * math.prod(cells), tensor.shape[0] * math.prod(cells)


_calculate_fan_in_and_fan_out = fans


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that keeps variance through a nonlinearity.

    Args:
        nonlinearity: ``"linear"``, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, ``"selu"``, ``"conv2d"``.
        param: the negative slope of ``"leaky_relu"``.
    """
    if nonlinearity in ("linear", "sigmoid") or nonlinearity.startswith("conv"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            operation = f"calculate_gain({nonlinearity!r}, {param!r})"
            fail("value", operation, f"{param!r}", f"negative_slope {param} not a valid number", "0.01")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    fail(
        "value",
        f"calculate_gain({nonlinearity!r})",
        repr(nonlinearity),
        f"Unsupported nonlinearity {nonlinearity}: known are linear, conv*, sigmoid, tanh, relu, leaky_relu and selu",
        "calculate_gain('relu')",
    )


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with numbers uniform in [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with normal numbers, truncated to [a, b]."""
    if not a <= b:
        _refuse(f"trunc_normal_(a={a}, b={b})", tensor, "a is not above b", f"trunc_normal_(a={b}, b={a})")

    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    # The inverse of the distribution function, at numbers uniform between its values at a and b.
    low, high = 2 * below(a) - 1, 2 * below(b) - 1
    with no_grad():
        return by_inverse_(tensor, low, high, std, mean, a, b, generator)


def bias_(tensor: Tensor | None, fan_in: int) -> None:
    """Fill a layer's bias uniformly in ±1/sqrt(fan_in), as linear and convolution layers start; None has none."""
    if tensor is not None:
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        uniform_(tensor, -bound, bound)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity."""
    if tensor.ndim != 2:
        _refuse("eye_", tensor, "Only tensors with 2 dimensions are supported", "tensor.view(rows, -1)")
    if tensor.is_meta:
        return tensor
    with no_grad():
        return tensor.copy_(_like(tensor, creation.eye(*tensor.shape)))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make a convolution's weight preserve as many input channels as possible, per group."""
    if tensor.ndim not in (3, 4, 5):
        _refuse("dirac_", tensor, "Only tensors with 3, 4, or 5 dimensions are supported", "eye_ for a matrix")
    if tensor.shape[0] % groups != 0:
        rule = f"dim 0 must be divisible by groups: {tensor.shape[0]} and {groups}"
        _refuse(f"dirac_(groups={groups})", tensor, rule, "dirac_(weight, groups=1)")
    if tensor.is_meta:
        return tensor
    value = np.zeros(tuple(tensor.shape))
    per_group = tensor.shape[0] // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(per_group, tensor.shape[1])):
            value[(group * per_group + channel, channel, *centre)] = 1
    with no_grad():
        return tensor.copy_(_like(tensor, from_data.tensor(value)))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None, *, data_format: str = "NCHW") -> Tensor:
    """Fill uniformly in ±gain * sqrt(6 / (fan_in + fan_out)).

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks (2010).
    """
    bound = gain * math.sqrt(6.0 / sum(fans(tensor, data_format)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None, *, data_format: str = "NCHW") -> Tensor:
    """Fill normally with deviation gain * sqrt(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor, data_format))), generator)


def _calculate_correct_fan(tensor: Tensor, mode: str, data_format: str = "NCHW") -> int:
    """Return the inputs or the outputs of a weight's unit, by ``"fan_in"`` or ``"fan_out"``."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        rule = f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        _refuse(f"kaiming init with mode={mode!r}", tensor, rule, "mode='fan_in'")
    return fans(tensor, data_format)[mode == "fan_out"]


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str, data_format: str) -> float:
    fan = _calculate_correct_fan(tensor, mode, data_format)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
    *,
    data_format: str = "NCHW",
) -> Tensor:
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
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity, data_format)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
    *,
    data_format: str = "NCHW",
) -> Tensor:
    """Fill normally with deviation gain / sqrt(fan); arguments as in `kaiming_uniform_`."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity, data_format), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix; all dims after the first count as one.

    Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks (2014).
    """
    if tensor.ndim < 2:
        rule = "Only tensors with 2 or more dimensions are supported"
        _refuse("orthogonal_", tensor, rule, "init.normal_ for biases and norms")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    with no_grad():
        flat = normal_(creation.empty(rows, columns), generator=generator).numpy().astype(np.float64)
        q, r = np.linalg.qr(flat.T if rows < columns else flat)
        q = q * np.sign(np.diag(r))  # makes the distribution uniform
        value = (q.T if rows < columns else q) * gain
        return tensor.copy_(_like(tensor, from_data.tensor(value.reshape(tuple(tensor.shape)))))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix normally, with the same share of zeros at random places in every column."""
    if tensor.ndim != 2:
        _refuse("sparse_", tensor, "Only tensors with 2 dimensions are supported", "tensor.view(rows, -1)")
    if tensor.is_meta:
        return tensor
    rows = tensor.shape[0]
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        order = uniform_(creation.empty(*tensor.shape), generator=generator).argsort(0).argsort(0)
        normal_(tensor, 0, std, generator)
        return tensor.mul_(_like(tensor, (order >= zeros).to(tensor.dtype)))


def _like(tensor: Tensor, value: Tensor) -> Tensor:
    """Return a local value on the device or placement of `tensor`, in its dtype."""
    value = value.to(tensor.dtype)
    if tensor.is_global:
        return value.to_global(placement=tensor.placement, sbp=[broadcast] * len(tensor.placement.hierarchy))
    return value.to(tensor.device)


def calc_fan(shape: tuple[int, ...], mode: str, data_format: str) -> int | float:
    """Return how many inputs or outputs one element of a weight of `shape` connects to; OneFlow's function.

    Args:
        shape: the weight's sizes, output channels first.
        mode: ``"fan_in"``, ``"fan_out"`` or ``"fan_avg"``, their mean.
        data_format: ``"NCHW"`` and so on: the input channels are dim 1; ``"NHWC"`` and so on: the last dim.
    """
    if len(shape) < 2:
        fail("value", "calc_fan(...)", f"shape {tuple(shape)}", "a weight has at least 2 dims", "calc_fan((8, 4), ...)")
    last = data_format.startswith("N") and data_format.endswith("C") and len(data_format) > 2
    cells = math.prod(shape[1:-1] if last else shape[2:])
    fan_in, fan_out = shape[-1 if last else 1] * cells, shape[0] * cells
    if mode not in ("fan_in", "fan_out", "fan_avg"):
        rule = "mode is 'fan_in', 'fan_out' or 'fan_avg'"
        fail("value", "calc_fan(...)", f"mode={mode!r}", rule, "mode='fan_in'")
    return {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[mode]


def _deprecated_alias(initialise):
    """Return an initialiser under its old name, without the underscore; it fills in place nevertheless."""

    def old(*args: Any, **kwargs: Any) -> Tensor:
        name = initialise.__name__
        text = f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`."
        warn(text, FutureWarning)
        return initialise(*args, **kwargs)

    old.__name__ = old.__qualname__ = initialise.__name__[:-1]
    old.__doc__ = f"Fill in place; the old name of `{initialise.__name__}`."
    return old


uniform, normal, constant, eye, dirac = map(_deprecated_alias, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = map(_deprecated_alias, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_deprecated_alias, (kaiming_uniform_, kaiming_normal_))
orthogonal, sparse = map(_deprecated_alias, (orthogonal_, sparse_))
