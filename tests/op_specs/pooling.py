"""Pooling with indices, unpooling, sampling at places, shuffles; sequences and attention."""

from __future__ import annotations

import numpy as np

from tests.op_specs.engine import op, same
from tests.support.generate import Input, call

for _n in (1, 2, 3):
    same(f"nn.functional.max_pool{_n}d_with_indices", of=f"nn.functional.max_pool{_n}d")
    same(f"nn.functional.adaptive_max_pool{_n}d_with_indices", of=f"nn.functional.adaptive_max_pool{_n}d")


def _unpool(n: int) -> None:
    @op(f"nn.functional.max_unpool{n}d", method=False)
    def make(g):
        shape = (1, 2, *(2, 2, 1)[:n])
        size = 4**n
        places = np.sort(np.argsort(g.array((2, size), "float32"), axis=1)[:, : int(np.prod(shape[2:]))], axis=1)
        return call(g.tensor(shape, "f", views=False), Input(places.reshape(shape), grad=False), 2, output_size=[4] * n)


def _lp(n: int) -> None:
    @op(f"nn.functional.lp_pool{n}d", method=False, tol={"float32": 2e-5})
    def make(g):
        x = g.tensor((1, 2, *(4, 5, 4)[:n]), "fi", low=0.5, high=2.0)
        return call(x, g.pick(2.0, 1.0, 3.0), 2, **g.maybe(stride=1, ceil_mode=True))


for _n in (1, 2, 3):
    _unpool(_n)
    _lp(_n)


def _fractional(n: int) -> None:
    @op(f"nn.functional.fractional_max_pool{n}d nn.functional.fractional_max_pool{n}d_with_indices", method=False)
    def make(g):
        x = g.tensor((1, 2, *(6, 6, 6)[:n]), "float32", low=-9.0, high=9.0, views=False)
        samples = g.tensor((1, 2, n), "float32", low=0.1, high=0.9, grad=False, views=False)
        return call(x, 2, output_size=(3,) * n, _random_samples=samples)


_fractional(2)
_fractional(3)


@op("nn.functional.affine_grid", method=False)
def _(g):
    if g.flag():
        return call(g.tensor((2, 3, 4), "f", views=False), [2, 1, 2, 3, 2], **g.maybe(align_corners=True))
    return call(g.tensor((2, 2, 3), "f", views=False), [2, 1, 3, 4], **g.maybe(align_corners=True))


@op("nn.functional.grid_sample", method=False, double=False, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    x, grid = g.tensor((1, 2, 3, 4), dtype), g.tensor((1, 2, 3, 2), dtype, low=-0.9, high=0.9, views=False)
    mode = g.pick("bilinear", "nearest", "bicubic")
    return call(x, grid, mode=mode, padding_mode=g.pick("zeros", "border", "reflection"), align_corners=g.flag())


@op("nn.functional.channel_shuffle nn.functional.native_channel_shuffle", method=False)
def _(g):
    return call(g.tensor((1, 4, 2, 3), "f"), g.pick(2, 1, 4))


@op("nn.functional.upsample", method=False)
def _(g):
    return call(g.tensor((1, 2, 3, 4), "float32"), **g.pick({"scale_factor": 2}, {"size": (5, 3)}))


@op("nn.functional.upsample_nearest nn.functional.upsample_bilinear", method=False)
def _(g):
    return call(g.tensor((1, 2, 3, 4), "float32"), **g.pick({"scale_factor": 2}, {"size": (5, 3)}))


def _interpolate_like(torch):
    return lambda x, like: torch.nn.functional.interpolate(x, tuple(like.shape[2:]))


@op("nn.functional.interpolate_like", reference=_interpolate_like)
def _(g):
    return call(g.tensor((1, 2, 3, 4), "float32"), g.tensor((1, 1, 5, 3), "float32", grad=False))


@op("nn.functional.local_response_norm", method=False, tol={"float32": 2e-5})
def _(g):
    return call(g.tensor(g.pick((2, 4, 3), (1, 5, 2, 2)), "fi"), g.pick(3, 2), **g.maybe(alpha=0.1, beta=0.5, k=2.0))


@op("nn.functional.instance_norm", method=False, tol={"float32": 5e-5})
def _(g):
    x = g.tensor(g.pick((2, 3, 4), (2, 3, 3, 2)), g.dtype(), views=False)
    affine = {"weight": g.tensor((3,), x.dtype), "bias": g.tensor((3,), x.dtype)} if g.flag() else {}
    return call(x, **affine)


@op("nn.functional.embedding_bag", method=False, double=False)
def _(g):
    weight = g.tensor((5, 3), "f", views=False)
    mode = g.pick("mean", "sum", "max")
    if g.flag():
        return call(g.index((6,), 5), weight, Input(np.array([0, 2, 5]), grad=False), mode=mode)
    return call(g.index((2, 3), 5), weight, mode=mode)


_BEHIND = "PyTorch's gradient holds behind a log_softmax only, where tests/nn compares it"


@op("nn.functional.ctc_loss", method=False, grad=False, tol={"float32": 2e-5}, reason=_BEHIND)
def _(g):
    scores = g.tensor((6, 2, 4), g.dtype(), views=False)
    targets = g.tensor((2, 3), "int64", low=1, high=4, grad=False, views=False)
    lengths = (Input(np.array([6, 5]), grad=False), Input(np.array([3, 2]), grad=False))
    return call(scores, targets, *lengths, **({"reduction": g.pick("sum", "none")} if g.flag() else {}))


@op("nn.functional.multi_head_attention_forward", method=False, double=False, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()

    def tensor(*shape):
        return g.tensor(shape, dtype, views=False)

    x = tensor(3, 2, 4)
    projection = (tensor(12, 4), tensor(12))
    return call(
        *(x, x, x, 4, g.pick(2, 1), *projection, None, None, False, 0.0, tensor(4, 4), tensor(4)),
        **g.maybe(training=False, average_attn_weights=False),
    )


@op("affine_grid_generator")
def _(g):
    return call(g.tensor((2, 2, 3), "f", views=False), [2, 1, 3, 4], g.flag())


@op("grid_sampler grid_sampler_2d", double=False, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    x, grid = g.tensor((1, 2, 3, 4), dtype), g.tensor((1, 2, 3, 2), dtype, low=-0.9, high=0.9, views=False)
    return call(x, grid, g.pick(0, 1), g.pick(0, 1, 2), g.flag())


@op("grid_sampler_3d", double=False, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    x, grid = g.tensor((1, 2, 2, 3, 4), dtype), g.tensor((1, 2, 2, 2, 3), dtype, low=-0.9, high=0.9, views=False)
    return call(x, grid, g.pick(0, 1), g.pick(0, 1, 2), g.flag())
