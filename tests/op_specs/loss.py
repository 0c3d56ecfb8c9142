"""Losses and distances."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import Input, call


def _reduction(g) -> dict:
    return {} if not g.flag() else {"reduction": g.pick("none", "sum", "mean")}


def _pair(names: str, low=None, high=None, target_low=None, target_high=None, **choices):
    @op(f"{names}", method=False)
    def make(g):
        x = g.tensor(g.pick((3,), (2, 3), (2, 3, 2), ()), "f", low=low, high=high)
        y = g.tensor(x.shape, x.dtype, low=target_low, high=target_high, grad=g.flag())
        return call(x, y, **_reduction(g), **{k: g.pick(*v) for k, v in choices.items() if g.flag()})


_pair("nn.functional.mse_loss")
_pair("nn.functional.l1_loss")
_pair("nn.functional.smooth_l1_loss", beta=(1.0, 0.5))
_pair("nn.functional.huber_loss", delta=(1.0, 0.5))
_pair("nn.functional.kl_div", target_low=0.1, target_high=1.0)


def _sign(g, shape):
    import numpy as np

    return Input(np.where(g.array(shape, "bool"), 1.0, -1.0).astype(np.float32), grad=False)


@op("nn.functional.soft_margin_loss", method=False)
def _(g):
    x = g.tensor(g.pick((3,), (2, 3)), "float32")
    return call(x, _sign(g, x.shape), **_reduction(g))


@op("nn.functional.hinge_embedding_loss", method=False)
def _(g):
    x = g.tensor(g.pick((3,), (2, 3)), "float32")
    return call(x, _sign(g, x.shape), **_reduction(g), **g.maybe(margin=0.5))


@op("nn.functional.margin_ranking_loss", method=False)
def _(g):
    x = g.tensor(g.pick((3,), (2, 3)), "float32")
    return call(x, g.tensor(x.shape, "float32"), _sign(g, x.shape), **_reduction(g), **g.maybe(margin=0.5))


@op("nn.functional.cosine_embedding_loss", method=False)
def _(g):
    return call(
        g.tensor((2, 3), "float32"), g.tensor((2, 3), "float32"), _sign(g, (2,)), **_reduction(g), **g.maybe(margin=0.2)
    )


@op("nn.functional.triplet_margin_loss", method=False)
def _(g):
    return (
        call(*[g.tensor((2, 3), "f") for _ in range(3)], **_reduction(g), **g.maybe(margin=0.5, swap=True, p=1.5))
        if g.flag()
        else call(*[g.tensor((2, 3), "float32") for _ in range(3)])
    )


@op("nn.functional.binary_cross_entropy", method=False)
def _(g):
    x = g.tensor(g.pick((3,), (2, 3)), "f", low=0.1, high=0.9)
    weight = {"weight": g.tensor(x.shape, x.dtype, low=0.1, high=2.0, grad=False)} if g.flag() else {}
    return call(x, g.tensor(x.shape, x.dtype, low=0.0, high=1.0, grad=False), **weight, **_reduction(g))


@op("nn.functional.binary_cross_entropy_with_logits", method=False)
def _(g):
    x = g.tensor(g.pick((3,), (2, 3)), "f")
    extra = {}
    if g.flag():
        extra["weight"] = g.tensor(x.shape, x.dtype, low=0.1, high=2.0, grad=False)
    if g.flag():
        extra["pos_weight"] = g.tensor(x.shape[-1:], x.dtype, low=0.1, high=2.0, grad=False)
    return call(x, g.tensor(x.shape, x.dtype, low=0.0, high=1.0, grad=False), **extra, **_reduction(g))


def _classes(g, weight: bool = True):
    import numpy as np

    shape, rest = g.pick(((3, 4), (3,)), ((4,), ()), ((2, 4, 3), (2, 3)), ((2, 4, 2, 2), (2, 2, 2)))
    x = g.tensor(shape, g.pick("float32", "float64"))
    target = g.index(rest, 4)
    kwargs = _reduction(g)
    if g.flag():
        kwargs["ignore_index"] = 0
        target = type(target)(
            np.where(np.arange(target.base.size).reshape(target.base.shape) == 0, 1, target.base), target.suffix, False
        )
    if weight and g.flag():
        kwargs["weight"] = g.tensor((4,), x.dtype, low=0.1, high=2.0, grad=False)
    return x, target, kwargs


@op("nn.functional.nll_loss", method=False)
def _(g):
    x, target, kwargs = _classes(g)
    return call(x, target, **kwargs)


@op("nn.functional.cross_entropy", method=False)
def _(g):
    if g.pick("index", "index", "probabilities") == "probabilities":
        x = g.tensor((3, 4), "float32")
        return call(x, g.tensor((3, 4), "float32", low=0.0, high=1.0), **_reduction(g), **g.maybe(label_smoothing=0.1))
    x, target, kwargs = _classes(g)
    return call(x, target, **kwargs, **g.maybe(label_smoothing=0.1))


@op("nn.functional.linear_cross_entropy", method=False)
def _(g):
    x = g.tensor((5, 3), "f")
    kwargs = _reduction(g) | g.maybe(ignore_index=1)
    if g.flag():
        kwargs["linear_bias"] = g.tensor((4,), x.dtype)
    if g.flag():
        kwargs["weight"] = g.tensor((4,), x.dtype, low=0.1, high=2.0, grad=False)
    else:
        kwargs |= g.maybe(label_smoothing=0.1)
    return call(x, g.tensor((4, 3), x.dtype), g.index((5,), 4), **kwargs)


@op("nn.functional.cosine_similarity", method=False)
def _(g):
    x = g.tensor(g.pick((2, 3), (3, 2, 2)), "f")
    return call(x, g.like(x) if g.flag() else g.tensor(x.shape, x.dtype), dim=g.pick(1, 0, -1))


@op("nn.functional.pairwise_distance", method=False)
def _(g):
    return call(g.tensor((2, 3), "float32"), g.tensor(g.pick((2, 3), (3,)), "float32"), **g.maybe(p=1.0, keepdim=True))


@op("nn.functional.normalize", method=False)
def _(g):
    x = g.tensor(g.pick((2, 3), (3,), (2, 3, 2)), "f")
    return call(x, **({"p": g.pick(1.0, 3.0)} if g.flag() else {}), dim=g.dim(x))


@op("nn.functional.poisson_nll_loss", method=False)
def _(g):
    x = g.tensor(g.pick((3,), (2, 3)), "fi")
    target = g.tensor(x.shape, g.pick(x.dtype, "float32"), low=0.5, high=4.0, grad=False)
    return call(x, target, **_reduction(g), **g.maybe(full=True))


@op("nn.functional.gaussian_nll_loss", method=False)
def _(g):
    x = g.tensor((2, 3), "f")
    return call(
        x,
        g.tensor((2, 3), x.dtype),
        g.tensor((2, 3), x.dtype, low=0.5, high=2.0),
        **_reduction(g),
        **g.maybe(full=True),
    )


@op("nn.functional.multi_margin_loss", method=False)
def _(g):
    return call(g.tensor((3, 4), "f"), g.index((3,), 4, views=False), **_reduction(g), **g.maybe(p=2, margin=0.5))


@op("nn.functional.multilabel_margin_loss", method=False)
def _(g):
    import numpy as np

    target = Input(np.array(g.pick([[0, 2, -1, 1], [3, -1, 0, 0]], [[1, -1, -1, -1], [0, 1, 2, 3]])), grad=False)
    return call(g.tensor((2, 4), "float32"), target, **_reduction(g))


@op("nn.functional.multilabel_soft_margin_loss", method=False)
def _(g):
    x = g.tensor((2, 3), "f")
    return call(x, g.tensor((2, 3), x.dtype, low=0.0, high=1.0, grad=False), **_reduction(g))


@op("nn.functional.triplet_margin_with_distance_loss", method=False)
def _(g):
    dtype = g.dtype()
    return call(*[g.tensor((2, 3), dtype) for _ in range(3)], **_reduction(g), **g.maybe(margin=0.5, swap=True))


@op("nn.functional.pdist", method=False)
def _(g):
    return call(g.tensor((4, 3), "f", low=-5.0, high=5.0, views=False), **g.maybe(p=1.0))


def _sparse(torch):
    return lambda labels, logits: torch.nn.functional.cross_entropy(logits, labels, reduction="none")


@op("nn.functional.sparse_softmax_cross_entropy", reference=_sparse)
def _(g):
    return call(g.index((3,), 4), g.tensor((3, 4), "float32"))


def _margins(torch):
    def loss(x, label, m1, m2, m3):
        rows = torch.arange(x.shape[0])
        return x.index_put((rows, label), torch.cos(m1 * torch.acos(x[rows, label]) + m2) - m3)

    return loss


@op("nn.functional.combined_margin_loss", reference=_margins)
def _(g):
    return call(
        g.tensor((3, 4), "float32", low=-0.9, high=0.9), g.index((3,), 4), 1.0, g.pick(0.2, 0.0), g.pick(0.1, 0.0)
    )
