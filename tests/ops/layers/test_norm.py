"""Normalisations against torch: values, gradients, running statistics, bfloat16."""

import numpy as np
import pytest
import torch.nn.functional as tf

import sbpjax as flow
from sbpjax._core.ops.layers import norm as nm
from sbpjax.errors import OpError, OpValueError
from tests.ops.checker import BF16, A, F, case, run

W, BIAS = F(3, seed=5), F(3, seed=6)
NORM_TOLERANCE = 2e-5  # the gradient subtracts nearly equal sums


def near(*args, **kw):
    return case(*args, tol=kw.pop("tol", NORM_TOLERANCE), **kw)


def stats(fn, *args, **kw):
    """A case with running statistics, which are buffers: torch has no gradient for them."""
    return near(given(fn), *args, const=(1, 2), **kw)


def layer(x, w, b, normalized_shape=None, eps=1e-5):
    return tf.layer_norm(x, normalized_shape or w.shape, w, b, eps)


def rms(x, w, normalized_shape=None, eps=None):
    return tf.rms_norm(x, normalized_shape or w.shape, w, eps)


def group(x, w, b, num_groups, eps=1e-5):
    return tf.group_norm(x, num_groups, w, b, eps)


def running(fn):
    """Torch changes the running statistics in place: return them with the output."""

    def call(x, mean, var, *rest, **kw):
        mean, var = (None if v is None else v.detach().clone() for v in (mean, var))
        out = fn(x, mean, var, *rest, **kw)
        return (out,) if mean is None else (out, mean, var)

    return call


def given(fn):
    """Drop the outputs that are None."""

    def call(*args, **kw):
        return tuple(v for v in fn(*args, **kw) if v is not None)

    call.__name__ = fn.__name__
    return call


CASES = [near(nm.layer_norm, layer, F(2, 4, 3), w, b, normalized_shape=(3,)) for w in (None, W) for b in (None, BIAS)]
CASES += [near(nm.layer_norm, layer, F(2, 4, 3), F(4, 3), F(4, 3, seed=1), eps=e) for e in (1e-5, 0.1)] + [
    near(nm.layer_norm, layer, F(3), W, BIAS)
]
CASES += [
    near(nm.layer_norm, layer, F(2, 3, dtype=BF16), W.astype(BF16), BIAS.astype(BF16), tol=2e-2),
    near(nm.layer_norm, layer, np.full((2, 3), 7, np.float32), W, BIAS),
]
CASES += [near(nm.rms_norm, rms, F(2, 4, 3), w, normalized_shape=(3,)) for w in (None, W)] + [
    near(nm.rms_norm, rms, F(2, 4, 3), F(4, 3), eps=1e-3)
]
CASES += [
    near(nm.group_norm, group, F(2, 12, *s), w, b, num_groups=g)
    for s in ((), (4,), (4, 5))
    for w, b in ((None, None), (F(12), F(12, seed=1)))
    for g in (1, 2, 3)
]
MEAN, VAR = F(3, seed=3), F(3, seed=4, low=0.5, high=2)
STATS = [(None, None), (MEAN, VAR)]
batch, instance = running(tf.batch_norm), running(tf.instance_norm)
CASES += [
    stats(nm.batch_norm, batch, F(4, 3, *s), m, v, w, b, training=True)
    for s in ((), (5,), (2, 5))
    for m, v in STATS
    for w, b in ((None, None), (W, BIAS))
]
CASES += [stats(nm.batch_norm, batch, F(4, 3, 2), MEAN, VAR, W, BIAS, training=False, eps=1e-3, momentum=0.3)]
CASES += [stats(nm.batch_norm, batch, F(4, 3, 2), MEAN, VAR, None, None, training=True, eps=1e-3, momentum=0.3)]
CASES += [
    stats(nm.instance_norm, instance, F(4, 3, *s), m, v, w, b)
    for s in ((5,), (2, 5))
    for m, v in STATS
    for w, b in ((None, None), (W, BIAS))
]
CASES += [stats(nm.instance_norm, instance, F(4, 3, 5), MEAN, VAR, W, BIAS, use_input_stats=False)]
CASES += [case(nm.normalize, tf.normalize, F(4, 3), dim=d, p=p) for d in (0, -1) for p in (1.0, 2.0, 3.0)] + [
    case(nm.normalize, tf.normalize, np.zeros((2, 3), np.float32), dim=1)
]
CASES += [case(nm.cosine_similarity, tf.cosine_similarity, F(4, 3), F(4, 3, seed=1), dim=d) for d in (0, 1)] + [
    case(nm.cosine_similarity, tf.cosine_similarity, F(4, 3), F(1, 3), dim=-1)
]
CASES += [
    case(nm.pairwise_distance, tf.pairwise_distance, F(4, 3), F(4, 3, seed=1), p=p, keepdim=k)
    for p in (1.0, 2.0)
    for k in (False, True)
]

test_against_torch = run(CASES)


def test_channels_last():
    x = F(4, 5, 3)
    out = nm.batch_norm(x, MEAN, VAR, W, BIAS, training=True, axis=-1)
    want = nm.batch_norm(np.moveaxis(x, -1, 1), MEAN, VAR, W, BIAS, training=True)
    np.testing.assert_allclose(out[0], np.moveaxis(np.asarray(want[0]), 1, -1), rtol=1e-6)
    np.testing.assert_allclose(out[2], want[2], rtol=1e-6)


def test_evaluation_leaves_the_statistics():
    out = nm.batch_norm(F(1, 3), MEAN, VAR)
    assert out[1] is MEAN and out[2] is VAR


def test_errors():
    with pytest.raises(OpError, match=r"expected input with shape \[\*, 4,\]"):
        nm.layer_norm(F(2, 3), normalized_shape=(4,))
    with pytest.raises(OpError, match=r"weight \(2,\)"):
        nm.batch_norm(F(4, 3), None, None, A(1, 2), None, training=True)
    with pytest.raises(OpValueError, match="more than 1 value"):
        nm.batch_norm(F(1, 3), training=True)
    with pytest.raises(OpError, match="divide C"):
        nm.group_norm(F(2, 5), num_groups=2)


def test_fix_of_a_wrong_shape_names_the_argument():
    with pytest.raises(OpError, match=r"fix:  normalized_shape=\(3,\), the last dims of this x"):
        flow.nn.LayerNorm(48)(flow.ones(4, 3))
