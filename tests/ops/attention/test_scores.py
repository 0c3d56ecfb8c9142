"""Windows and caps of scores, by hand; and the arguments of attention that are wrong."""

import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as sdpa
from sbpjax._core.ops.attention.scores import CAUSAL, EVERY_KEY, Scores, in_window, may_hide_all
from sbpjax.errors import OpError, OpTypeError, OpValueError

Q = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 6, 4)), "float32")
IDS = jnp.asarray([[0, 0, 0, 1, 1, 2], [5, 5, 6, 6, 6, 6]])


@pytest.mark.parametrize("window", [(2, 0), (1, 2), (None, 1), (3, None)])
def test_in_window(window):
    row, key = np.indices((6, 9), dtype=np.int32)
    left, right = (np.inf if n is None else n for n in window)
    np.testing.assert_array_equal(in_window(row, key, window), (row - left <= key) & (key <= row + right))
    assert in_window(row, key, EVERY_KEY) is None


def test_the_cap_and_its_slope():
    s, slope = Scores(1.0, soft_cap=2.0).cap_scores(jnp.asarray([0.0, 1.0, 100.0]))
    np.testing.assert_allclose(s, [0, 2 * np.tanh(0.5), 2], rtol=1e-6)
    np.testing.assert_allclose(slope, [1, 1 / np.cosh(0.5) ** 2, 0], rtol=1e-6, atol=1e-7)
    assert Scores(1.0).cap_scores(s) == (s, None)


def test_share():
    found = [Scores(1.0, w).share(100) for w in (EVERY_KEY, CAUSAL, (9, 0), (9, 10))]
    np.testing.assert_allclose(found, [1, 0.5, 0.1, 0.2])


def test_which_hide_all():
    keep, bias = np.ones(3, bool), np.ones(3)
    hides = [(None, None, (2, 0)), (None, (IDS, IDS), EVERY_KEY), (keep, None, EVERY_KEY), (bias, None, CAUSAL)]
    assert all(may_hide_all(mask, ids, Scores(1.0, window)) for mask, ids, window in hides)
    never = [(None, EVERY_KEY), (None, CAUSAL), (bias, EVERY_KEY)]
    assert not any(may_hide_all(mask, None, Scores(1.0, window)) for mask, window in never)


@pytest.mark.parametrize("implementation", ["plain", "kernel"])
def test_windows_segments_and_caps_by_hand(implementation):
    found = sdpa(Q, Q, Q, None, None, IDS, IDS, window_size=(2, 0), soft_cap=0.7, implementation=implementation)
    q = np.asarray(Q, np.float64)
    s = 0.7 * np.tanh(q @ q.swapaxes(-1, -2) / 2 / 0.7)
    row, key = np.indices((6, 6))
    ids = np.asarray(IDS)
    keep = (key <= row) & (key >= row - 2) & (ids[:, None, :, None] == ids[:, None, None, :])
    weights = np.where(keep, np.exp(s), 0)
    np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True) @ q, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("implementation", ["plain", "kernel"])
def test_a_query_without_keys_gives_zero(implementation):
    alone = sdpa(Q, Q[:, :, :3], Q[:, :, :3], window_size=(1, 0), implementation=implementation)
    assert (np.asarray(alone[:, :, 4:]) == 0).all() and np.isfinite(alone).all()
    other = sdpa(Q, Q, Q, None, None, IDS, IDS + 5, implementation=implementation)
    assert (np.asarray(other[0]) == 0).all()


def test_a_window_of_all_keys_is_none():
    for given, same in (((5, 5), {}), (7, {}), ((None, 0), {"is_causal": True}), ((5, 0), {"is_causal": True})):
        np.testing.assert_array_equal(sdpa(Q, Q, Q, window_size=given), sdpa(Q, Q, Q, **same))


@pytest.mark.parametrize("window", [-1, (1, 2, 3), (1.5, 0), "full", True, (2, -1)])
def test_wrong_windows(window):
    with pytest.raises(OpValueError, match=r"a window is \(left, right\)"):
        sdpa(Q, Q, Q, window_size=window)


@pytest.mark.parametrize("cap", [0, -3.0, float("inf")])
def test_wrong_caps(cap):
    with pytest.raises(OpValueError, match="a positive number"):
        sdpa(Q, Q, Q, soft_cap=cap)


def test_wrong_segments():
    for ids in ((IDS, None), (IDS[:, :5], IDS), (IDS, IDS[:1, :1]), (IDS[:, None], IDS), (IDS[None, 0], IDS[:, :0])):
        with pytest.raises(OpError, match="without the dim of the heads"):
            sdpa(Q, Q, Q, None, None, *ids)
    with pytest.raises(OpTypeError, match="integers"):
        sdpa(Q, Q, Q, None, None, IDS * 1.0, IDS)
