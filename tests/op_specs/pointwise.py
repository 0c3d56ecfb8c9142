"""Ops of one tensor, element by element."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.op_specs.engine import op, same
from tests.support.generate import Dtype, call


def _unary(names: str, kinds: str = "fhi", low=None, high=None, **options) -> None:
    @op(names, **options)
    def make(g):
        return call(g.tensor(kinds=kinds, low=low, high=high, special=low is None))


_unary("exp expm1 sin cos sinh cosh tanh asinh sigmoid sign abs square neg positive", "fhic")
_unary("exp2 erf erfc atan deg2rad rad2deg", "fhi")
_unary("sinc", "fhi", tol={"bfloat16": 4e-2}, reason="PyTorch rounds every step of its gradient to bfloat16")
_unary("floor ceil trunc round frac", "fhi")
_unary("isnan isfinite isinf logical_not", "fhibc")
_unary("isposinf isneginf", "fhib")
_unary("bitwise_not", "ib")
_unary("log log2 log10 log1p sqrt rsqrt", "fhi")
_unary("reciprocal", "fhic")
_unary("tan", "fh", -1.4, 1.4)
_unary("asin acos atanh erfinv", "fh", -0.95, 0.95)
_unary("acosh", "fh", 1.1, 9.0)
_unary("lgamma digamma", "fh", 0.1, 9.0, tol={"float64": 1e-9, "float32": 2e-5, "bfloat16": 4e-2, "float16": 4e-3})
_unary("clone", "fhibc")
_unary("conj real", "fc", aliases=True)
_unary("imag", "c", aliases=True)
_unary("is_floating_point is_complex numel", "fhibc")
_unary("fix signbit", "fi")
_unary("frexp", "f", 0.5, 9.0, grad=False)
_unary("square_relu", "f", reference=lambda torch: lambda x: torch.relu(x) ** 2)
same("absolute", of="abs")
same("negative", of="neg")
same("arcsin", of="asin")
same("arccos", of="acos")
same("arctan", of="atan")
same("arcsinh", of="asinh")
same("arccosh", of="acosh")
same("arctanh", of="atanh")


@op("nan_to_num")
def _(g):
    return call(g.tensor(kinds="fhi", special=True), **g.maybe(nan=1.5, posinf=9.0, neginf=-9.0))


@op("logit")
def _(g):
    return call(g.tensor(kinds="fh", low=0.05, high=0.95), **g.maybe(eps=0.1))


@op("round", inplace=True)
def _(g):
    return call(g.tensor(kinds="f", special=True), **g.maybe(decimals=1))


# --------------------------------------------------------------------------------------------- activation functions

_unary("relu", "fhi")
_unary("selu", "fh")
_unary("nn.functional.relu nn.functional.relu6", "fhi", method=False)
_unary("nn.functional.sigmoid nn.functional.tanh", "fhi", method=False)
_unary("nn.functional.selu nn.functional.softsign nn.functional.logsigmoid", "fh", method=False)
_unary(
    "nn.functional.tanhshrink nn.functional.hardsigmoid nn.functional.hardswish nn.functional.silu", "fh", method=False
)
_unary("nn.functional.mish", "fh", method=False)
_unary("silu", "fh", reference=lambda torch: torch.nn.functional.silu)
_unary("mish", "fh", reference=lambda torch: torch.nn.functional.mish)
_unary("softsign", "fh", reference=lambda torch: torch.nn.functional.softsign)
_unary(
    "nn.functional.relu_", "fh", grad=False, reason="writes to its input, which may be a leaf", method=False, out=False
)


def _quick_gelu(torch):
    return lambda x: x * torch.sigmoid(1.702 * x)


_unary("quick_gelu nn.functional.quick_gelu", "f", reference=_quick_gelu)


def _with(name: str, kinds: str = "fh", **choices) -> None:
    @op(name, method=False)
    def make(g):
        return call(g.tensor(kinds=kinds, special=True), **{k: g.pick(*v) for k, v in choices.items() if g.flag()})


_with("nn.functional.elu", alpha=(1.0, 0.5))
_with("nn.functional.celu", alpha=(1.0, 0.5))
_with("nn.functional.leaky_relu", negative_slope=(0.01, 0.3))
_with("nn.functional.hardtanh", "fh", min_val=(-1.0, -0.5), max_val=(1.0, 2.0))
_with("nn.functional.softplus", beta=(1, 2.0), threshold=(20, 1.0))
_with("nn.functional.hardshrink", lambd=(0.5, 1.0))
_with("nn.functional.softshrink", lambd=(0.5, 1.0))


@op("nn.functional.gelu", method=False)
def _(g):
    x = g.tensor(kinds="fh", special=True)
    finite = np.where(np.isposinf(x.base.astype(np.float64)), 30, x.base).astype(x.base.dtype)
    x = dataclasses.replace(x, base=finite)  # of infinity PyTorch's vector code gives NaN
    return call(x, **({"approximate": g.pick("none", "tanh")} if g.flag() else {}))


_with("celu", alpha=(1.0, 0.5))


@op("gelu", reference=lambda torch: torch.nn.functional.gelu)
def _(g):
    return call(g.tensor(kinds="fh"), **({"approximate": "tanh"} if g.flag() else {}))


@op("softplus", reference=lambda torch: torch.nn.functional.softplus)
def _(g):
    return call(g.tensor(kinds="fh"), **g.maybe(beta=2.0))


@op("softshrink", reference=lambda torch: torch.nn.functional.softshrink)
def _(g):
    return call(g.tensor(kinds="fh"))


@op("threshold nn.functional.threshold", method=False)
def _(g):
    return call(g.tensor(kinds="fhi", special=True), g.pick(0.0, 1, 0.5), g.pick(0, -1, 7))


@op("prelu nn.functional.prelu")
def _(g):
    x = g.tensor(kinds="fh", min_dim=1)
    channels = x.shape[1] if x.ndim > 1 else 1
    return call(x, g.tensor((g.pick(1, channels),), x.dtype))


@op("nn.functional.glu", method=False)
def _(g):
    return call(g.tensor((2, 4), "fh"), *g.pick((), (-1,), (0,), (1,)))


@op("softmax log_softmax nn.functional.softmax nn.functional.log_softmax nn.functional.softmin")
def _(g):
    x = g.tensor(kinds="fh", special=True, max_dim=4)
    return call(x, dim=g.dim(x), **({"dtype": Dtype("float64")} if g.flag() else {}))


@op("cast", reference=lambda torch: lambda x, dtype: x.to(dtype))
def _(g):
    return call(g.tensor(kinds="fhibc"), Dtype(g.pick("float32", "int64", "float64", "bfloat16", "bool", "uint8")))


def _square_relu(torch):
    return lambda x: torch.relu(x) ** 2


_unary("nn.functional.square_relu", "f", reference=_square_relu)
_written = {"grad": False, "method": False, "out": False, "reason": "writes to its input, which may be a leaf"}
_unary("nn.functional.selu_ nn.functional.celu_ nn.functional.elu_", "f", **_written)
_unary("nn.functional.leaky_relu_ nn.functional.hardtanh_", "f", **_written)


@op("nn.functional.threshold_", **_written)
def _(g):
    return call(g.tensor(kinds="f"), 0.5, 2.0)


@op("nn.functional.rrelu nn.functional.rrelu_", **_written)
def _(g):
    return call(g.tensor(kinds="f"), 0.1, 0.3)  # not training: the middle of the slopes


@op("fill")
def _(g):
    return call(g.tensor(kinds="fib"), g.pick(2, 0))
