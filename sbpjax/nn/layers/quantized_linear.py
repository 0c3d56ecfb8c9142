"""`QuantizedLinear`: inference layer with 8-bit weights; `quantize_weights` converts the layers of a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sbpjax._core.ops.layers.quantized import linear_quantized, quantize_rows
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.dispatch.dispatch import apply
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import OpTypeError, OpValueError
from sbpjax.nn.layers.linear import Linear
from sbpjax.nn.module import Module
from sbpjax.sbp import broadcast, split

_FORMATS = (dtypes.int8, dtypes.float8_e4m3fn)


class QuantizedLinear(Module):
    """``y = x (scale · W)ᵀ + b`` with a weight of 8 bits and a scale for each output; not trained further.

    `weight`, `(out_features, in_features)`, and `scale`, `(out_features,)` float32, are buffers with the layout of the
    original weight: ``split(0)`` divides the outputs over the ranks, ``split(1)`` the inputs. A gradient passes to x.

    Args:
        linear: the layer whose weight is rounded; its bias is taken over.
        dtype: ``int8`` or ``float8_e4m3fn``.

    Raises:
        OpTypeError: another dtype, or no linear layer.

    Example:
        >>> layer = flow.nn.Linear(4, 6)
        >>> small = flow.nn.QuantizedLinear(layer)
        >>> small.weight.dtype, bool((small(flow.ones(2, 4)) - layer(flow.ones(2, 4))).abs().max() < 0.05)
        (sbpjax.int8, True)
    """

    def __init__(self, linear: Linear, dtype: Any = dtypes.int8) -> None:
        super().__init__()
        if not isinstance(linear, Linear):
            rule = "it is made of an nn.Linear"
            raise OpTypeError("QuantizedLinear(linear)", f"a {type(linear).__name__}", rule, "nn.Linear(4, 6)")
        if dtype not in _FORMATS:
            rule = "weights are rounded to int8 or float8_e4m3fn"
            raise OpTypeError(f"QuantizedLinear(dtype={dtype!r})", repr(dtype), rule, "dtype=sbpjax.int8")
        self.in_features, self.out_features = linear.in_features, linear.out_features
        with no_grad():
            weight, scale = apply(quantize_rows, linear.weight, dtype=dtype.np)
            if linear.weight.is_global:
                weight_sbp = linear.weight.sbp
                weight = weight.to_global(sbp=weight_sbp)
                scale = scale.to_global(sbp=[s if s == split(0) else broadcast for s in weight_sbp])
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, input: Tensor) -> Tensor:
        return apply(linear_quantized, input, self.weight, self.scale, self.bias)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}, {self.weight.dtype!r}"


def quantize_weights(model: Module, dtype: Any = dtypes.int8, skip: Iterable[str] = ()) -> list[str]:
    """Replace the linear layers of a model by `QuantizedLinear`, in place, for inference.

    Each output has a scale of its own, so int8 is off by at most 0.4 % of the largest weight of an output. The weights
    take a quarter of their bytes in float32; a layer computes in the dtype of its input.

    Args:
        model: any module; itself may not be a linear layer.
        dtype: ``int8`` or ``float8_e4m3fn``.
        skip: names of modules, as of `named_modules`, that stay unchanged with all submodules, such as a head.

    Returns:
        The names of the layers that were replaced.

    Raises:
        OpValueError: a name in ``skip`` that the model lacks, or nothing to replace.

    Example:
        >>> model = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.ReLU(), flow.nn.Linear(8, 2))
        >>> flow.nn.utils.quantize_weights(model, skip=["2"])
        ['0']
    """
    modules, skip = dict(model.named_modules()), set(skip)
    call = "quantize_weights(model)"
    if missing := skip - modules.keys():
        rule = "names are those of named_modules"
        raise OpValueError(call, f"skip={sorted(missing)}", rule, f"one of {list(modules)[1:6]}")
    replaced = []
    for name, module in modules.items():
        parents = {name, *(name[:i] for i, c in enumerate(name) if c == ".")}
        # By class: a subclass may use its weight differently.
        if type(module) is not Linear or not name or parents & skip:
            continue
        parent, _, own = name.rpartition(".")
        setattr(modules[parent], own, QuantizedLinear(module, dtype))
        replaced.append(name)
    if not replaced:
        seen = f"a {type(model).__name__} without an nn.Linear inside, or with all of them skipped"
        raise OpValueError(
            call, seen, "linear layers inside a model are replaced", "QuantizedLinear(layer) for one layer"
        )
    return replaced
