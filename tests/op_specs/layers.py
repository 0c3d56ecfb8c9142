"""Convolution, pooling, normalisation, attention, resizing."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import call

_CONV = {"float32": 1e-5}  # sums over channels and taps


def _conv(name: str, n: int, transposed: bool = False) -> None:
    @op(name, tol=_CONV, method=False)
    def make(g):
        groups = g.pick(1, 2)
        size = (5, 4, 4)[:n] if n < 3 else (3, 4, 3)
        x = g.tensor((g.pick(1, 2), 4, *size), g.pick("float32", "float64"), views=False)
        taps = (g.pick(2, 3, 1),) * n if n < 3 else (2, 1, 2)
        outputs = 2 if not transposed else 2 // groups
        weight = (4, outputs, *taps) if transposed else (outputs, 4 // groups, *taps)
        bias = g.tensor((2,), x.dtype) if g.flag() else None
        kwargs = {
            "stride": g.pick(1, 2),
            "padding": g.pick(0, 1),
            "groups": groups,
            "dilation": g.pick(1, 1, 2) if taps[0] < 3 else 1,
        }
        if transposed and kwargs["stride"] == 2 and g.flag():
            kwargs["output_padding"] = 1
        return call(x, g.tensor(weight, x.dtype, views=False), bias, **kwargs)


for _n in (1, 2, 3):
    _conv(f"nn.functional.conv{_n}d", _n)
    _conv(f"nn.functional.conv_transpose{_n}d", _n, transposed=True)


def _pool(kind: str, n: int) -> None:
    @op(f"nn.functional.{kind}_pool{n}d", method=False)
    def make(g):
        x = g.tensor((*g.pick((1, 2), (2,)), *(5, 4, 4)[:n]), g.pick("float32", "float64"), low=-9.0, high=9.0)
        kernel = g.pick(2, 3)
        kwargs = {**({"stride": g.pick(1, 2)} if g.flag() else {}), **g.maybe(padding=1, ceil_mode=True)}
        if kind == "max" and g.flag():
            kwargs["dilation"] = 1 if kernel == 3 else g.pick(1, 2)
        if kind == "avg" and g.flag():
            kwargs["count_include_pad"] = False
        return call(x, kernel, **kwargs)

    @op(f"nn.functional.adaptive_{kind}_pool{n}d", method=False, double=kind == "avg")
    def adaptive(g):
        x = g.tensor((*g.pick((1, 2), (2,)), *(5, 4, 4)[:n]), g.pick("float32", "float64"), low=-9.0, high=9.0)
        return call(x, g.pick(1, 2, (3, 2, 1)[:n] if n > 1 else 3))


for _n in (1, 2, 3):
    _pool("max", _n)
    _pool("avg", _n)

_NORM = {"float32": 2e-5}  # differences of nearly equal numbers, divided by a small spread


@op("nn.functional.layer_norm", tol=_NORM, method=False)
def _(g):
    x = g.tensor(g.pick((2, 4), (2, 3, 4)), "f")
    shape = x.shape[-g.pick(1, x.ndim - 1) :]
    affine = (g.tensor(shape, x.dtype), g.tensor(shape, x.dtype)) if g.flag() else ()
    return call(x, list(shape), *affine, **g.maybe(eps=1e-3))


@op("nn.functional.rms_norm", tol=_NORM, method=False)
def _(g):
    x = g.tensor(g.pick((2, 4), (2, 3, 4)), "f")
    return call(x, [4], *((g.tensor((4,), x.dtype),) if g.flag() else ()), **g.maybe(eps=1e-3))


@op("nn.functional.group_norm", tol=_NORM, method=False)
def _(g):
    x = g.tensor(g.pick((2, 4, 3), (2, 4, 2, 2)), "f")
    return call(x, g.pick(2, 1, 4), *((g.tensor((4,), x.dtype), g.tensor((4,), x.dtype)) if g.flag() else ()))


@op("nn.functional.batch_norm", tol=_NORM, method=False)
def _(g):
    x = g.tensor(g.pick((4, 3), (2, 3, 4), (2, 3, 2, 2)), "f")
    stats = (  # in backward PyTorch reads what is beside those with strides, and beside such weights
        g.tensor((3,), x.dtype, grad=False, views=False),
        g.tensor((3,), x.dtype, low=0.5, high=2.0, grad=False, views=False),
    )
    training = g.flag()
    affine = {"weight": g.tensor((3,), x.dtype, views=False), "bias": g.tensor((3,), x.dtype)} if g.flag() else {}
    return call(x, *(stats if not training else (None, None)), **affine, training=training)


@op("nn.functional.scaled_dot_product_attention", method=False, tol={"float32": 1e-5})
def _(g):
    lead = g.pick((1, 2), (2,), ())
    q, k = g.tensor((*lead, 3, 4), "f"), None
    k, v = g.tensor((*lead, 3, 4), q.dtype), g.tensor((*lead, 3, 4), q.dtype)
    how = g.pick("plain", "causal", "mask")
    kwargs = (
        {"is_causal": True}
        if how == "causal"
        else {"attn_mask": g.tensor((3, 3), q.dtype, grad=False)}
        if how == "mask"
        else {}
    )
    return call(q, k, v, **kwargs, **g.maybe(scale=0.7))


@op("nn.functional.interpolate", method=False, tol={"float32": 1e-5})
def _(g):
    mode = g.pick("nearest", "bilinear", "linear", "bicubic", "area", "trilinear", "nearest-exact")
    shape = {"linear": (1, 2, 4), "trilinear": (1, 1, 2, 3, 2)}.get(mode, (1, 2, 3, 4))
    x = g.tensor(shape, g.pick("float32", "float64"))
    how = {"size": [5, 3, 4][: len(shape) - 2]} if g.flag() else {"scale_factor": g.pick(2, 0.5, 1.5)}
    if mode in ("bilinear", "linear", "bicubic", "trilinear") and g.flag():
        how["align_corners"] = True
    return call(x, mode=mode, **how)


@op("nn.functional.unfold", method=False)
def _(g):
    return call(g.tensor((2, 2, 4, 5), "float32"), g.pick(2, (2, 3)), **g.maybe(padding=1, stride=2, dilation=(1, 1)))


@op("nn.functional.fold", method=False)
def _(g):
    return call(g.tensor((2, 8, 12), "float32"), (4, 5), 2)


def _nothing(names: str, **kwargs) -> None:
    """Dropout that drops nothing: off, or with probability 0; what it drops is tested by `random`."""

    @op(names, method=False)
    def make(g):
        x = g.tensor(kwargs.get("shape"), "f")
        return call(x, p=g.pick(0.0, 0.5), training=False)


_nothing("nn.functional.alpha_dropout")
_nothing("nn.functional.dropout1d", shape=(2, 3, 4))
_nothing("nn.functional.dropout2d", shape=(2, 3, 2, 2))
_nothing("nn.functional.dropout3d", shape=(1, 2, 2, 2, 2))


def _first(result, mean, rstd):
    return result, mean.detach(), rstd.detach()  # PyTorch's backward of it reads the gradient of the first alone


@op("native_layer_norm", double=False, invariant=_first, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    return call(g.tensor((2, 4), dtype), [4], g.tensor((4,), dtype), g.tensor((4,), dtype), 1e-5)


@op("native_group_norm", double=False, invariant=_first, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    x, weight, bias = (g.tensor(shape, dtype, views=False) for shape in ((2, 4, 3), (4,), (4,)))
    return call(x, weight, bias, 2, 4, 3, 2, 1e-5)


@op("native_batch_norm", double=False, invariant=_first, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    x, weight, bias = (g.tensor(shape, dtype, views=False) for shape in ((3, 2, 3), (2,), (2,)))
    return call(x, weight, bias, None, None, True, 0.1, 1e-5)
