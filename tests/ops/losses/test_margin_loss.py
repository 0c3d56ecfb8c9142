"""Losses with a margin, and of counts and variances, against torch."""

import numpy as np
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.losses import distance, loss
from sbpjax._core.ops.losses import margin_loss as lo
from tests.ops.checker import A, F, I, case, run


def both(name, *inputs, ref_attrs=None, **kw):
    return case(
        getattr(loss if name.endswith("nll_loss") else lo, name), getattr(tf, name), *inputs, ref_attrs=ref_attrs, **kw
    )


X, Y, V = F(4, 5), F(4, 5, seed=1), F(4, 5, low=0.1, high=2.0)
COUNTS = I(4, 5, high=6).astype(np.float32)
REDUCTIONS = ("mean", "sum", "none")
CASES = [
    both("poisson_nll_loss", X, COUNTS, full=f, reduction=r, const=(1,))
    for f, r in zip((True, False, True), REDUCTIONS)
]
CASES += [both("poisson_nll_loss", np.abs(X) + 0.1, COUNTS, log_input=False, full=True, const=(1,))]
CASES += [both("gaussian_nll_loss", X, Y, V, full=f, reduction=r) for f, r in zip((True, False, True), REDUCTIONS)]
CASES += [both("gaussian_nll_loss", X, Y, F(4, low=0.5, high=2)), both("gaussian_nll_loss", X, Y, V[:, :1] * 0)]


def _multi_margin(x, target, weight, p, margin, reduction):
    return tf.multi_margin_loss(x, target, p, margin, weight, reduction=reduction)


W = A(0.5, 1.0, 2.0, 0.0, 1.0)
CASES += [
    case(lo.multi_margin_loss, _multi_margin, X, I(4), w, p=p, margin=0.7, reduction=r, const=(2,))
    for w, p, r in ((None, 1, "mean"), (W, 2, "sum"), (W, 1, "none"), (None, 2, "none"))
]
CASES += [case(lo.multi_margin_loss, _multi_margin, F(5), np.array(2), None, p=1, margin=1.0, reduction="mean")]
LABELS = np.array([[3, 0, -1, 1, 2], [-1, 1, 2, 3, 4], [0, 1, 2, 3, 4], [4, -1, 4, 0, 0]])
CASES += [both("multilabel_margin_loss", X, LABELS, reduction=r) for r in REDUCTIONS]
CASES += [both("multilabel_margin_loss", F(5), LABELS[0])]
BITS = I(4, 5, high=2).astype(np.float32)
CASES += [
    case(
        lo.multilabel_soft_margin_loss,
        lambda x, t, w, reduction: tf.multilabel_soft_margin_loss(x, t, w, reduction=reduction),
        X, BITS, w, reduction=r, const=(1, 2),
    )
    for w, r in ((None, "mean"), (W, "sum"), (W, "none"))
]  # fmt: skip
CASES += [case(distance.pdist, tf.pdist, X, p=p) for p in (2.0, 1.0, 3.0, 0.0, float("inf"))]


def _margins(x, target, m1, m2, m3):
    own = torch.nn.functional.one_hot(target, x.shape[1]).bool()
    return torch.where(own, torch.cos(torch.acos(x) * m1 + m2) - m3, x)


COSINES = F(4, 5, low=-0.9, high=0.9)
CASES += [
    case(lo.combined_margin_loss, _margins, COSINES, I(4), m1=a, m2=b, m3=c)
    for a, b, c in ((1.0, 0.5, 0.0), (1.0, 0.0, 0.3), (0.9, 0.2, 0.1))
]

test_against_torch = run(CASES)
