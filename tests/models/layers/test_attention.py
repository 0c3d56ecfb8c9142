"""Attention of shared key heads, rotated and normalised, against its formula in NumPy; and what a mesh moves."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.models.layers import Attention, make_attention_mask, rope_cos_sin

B, T, H, K, C = 2, 5, 4, 2, 6
S = flow.sbp.split


def by_formula(layer, x, mask, cos, sin):
    weight = {name: p.detach().numpy().astype(np.float64) for name, p in layer.named_parameters()}

    def heads(name, count):
        y = x @ weight[f"{name}.weight"].T + weight.get(f"{name}.bias", 0.0)
        y = y.reshape(B, T, count, C)
        if f"{name}_norm.weight" in weight:
            y = y / np.sqrt((y**2).mean(-1, keepdims=True) + 1e-6) * weight[f"{name}_norm.weight"]
        return y

    def turned(y):
        a, b = y[..., : C // 2], y[..., C // 2 :]
        c, s = cos[:, None], sin[:, None]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    q, k, v = turned(heads("q", H)), turned(heads("k", K)), heads("v", K)
    out = np.zeros((B, T, H, C))
    for h in range(H):
        scores = np.einsum("btc,bsc->bts", q[:, :, h], k[:, :, h // (H // K)]) / np.sqrt(C)
        odds = np.exp(np.where(mask, scores, -np.inf))
        out[:, :, h] = odds / odds.sum(-1, keepdims=True) @ v[:, :, h // (H // K)]
    return out.reshape(B, T, H * C) @ weight["out.weight"].T + weight.get("out.bias", 0.0)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("window", [None, 2])
def test_it_is_the_formula(bias, window):
    flow.manual_seed(0)
    layer = Attention(16, H, kv_heads=K, head_dim=C, bias=bias, out_bias=False, norm_eps=1e-6 if bias else None)
    x = np.random.default_rng(0).standard_normal((B, T, 16))
    cos_sin = rope_cos_sin(flow.arange(T), C, 100.0)
    mask, is_causal = make_attention_mask(flow.zeros(B, T), causal=True, window=window)
    assert is_causal == (window is None)
    behind = np.arange(T)[:, None] - np.arange(T)
    whole = (behind >= 0) & (behind < (window or T))
    found = layer(flow.tensor(x.astype("f")), cos_sin, mask, is_causal)
    # q and k have norms only together with a bias here
    want = by_formula(layer, x, whole, *(t.numpy().astype(np.float64) for t in cos_sin))
    np.testing.assert_allclose(found.detach().numpy(), want, rtol=1e-4, atol=1e-5)
    layer.window = window  # the layer's own, and no mask
    found = layer(flow.tensor(x.astype("f")), cos_sin, None, True)
    np.testing.assert_allclose(found.detach().numpy(), want, rtol=1e-4, atol=1e-5)


def test_split_heads_end_in_a_partial_sum():
    flow.manual_seed(0)
    layer = Attention(16, H, kv_heads=K, head_dim=C)
    x = flow.randn(B, T, 16)
    want = layer(x, is_causal=True)
    place = flow.placement("cpu", [0, 1])
    for name, parameter in layer.named_parameters():
        split = S(1) if name == "out.weight" else S(0)
        parameter.data = flow.tensor(parameter.detach().numpy(), placement=place, sbp=split)
    with flow.boxing_policy("error"):  # nothing moves
        found = layer(x.to_global(place, flow.sbp.broadcast), is_causal=True)
    assert found.sbp == (flow.sbp.partial_sum,)
    np.testing.assert_allclose(found.detach().numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
