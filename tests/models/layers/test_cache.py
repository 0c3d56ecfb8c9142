"""A cache gives what the whole sequence would: token by token, in parts, and on a mesh."""

import numpy as np

import sbpjax as flow
from sbpjax.models.layers import Attention, KeyValues, make_attention_mask, rope_cos_sin

B, T, SLOTS = 2, 6, 9


def layer():
    flow.manual_seed(0)
    return Attention(16, 4, kv_heads=2, head_dim=4)


def test_parts_of_a_sequence_give_the_whole():
    attention, x = layer(), flow.randn(B, T, 16)
    whole = attention(x, rope_cos_sin(flow.arange(T), 4, 100.0), None, True)
    cache = KeyValues(*(flow.zeros(B, 2, SLOTS, 4) for _ in "kv"))
    found = []
    with flow.no_grad():
        for start, stop in ((0, 3), (3, 4), (4, 6)):
            part, cache_position = x[:, start:stop], flow.tensor(start)
            attention_mask = (flow.arange(SLOTS) < stop).long().expand(B, SLOTS)
            mask, is_causal = make_attention_mask(
                part[..., 0], causal=True, attention_mask=attention_mask, cache_position=cache_position
            )
            assert mask.shape == (B, 1, stop - start, SLOTS)
            cos_sin = rope_cos_sin(flow.arange(start, stop), 4, 100.0)
            found.append(attention(part, cos_sin, mask, is_causal, cache, cache_position))
    np.testing.assert_allclose(flow.cat(found, 1).numpy(), whole.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert cache.k[:, :, T:].abs().sum() == 0


def test_a_window_hides_what_is_far_behind():
    attention_mask = flow.ones(1, SLOTS, dtype=flow.int64)
    mask, _ = make_attention_mask(
        flow.zeros(1, 2), causal=True, window=3, attention_mask=attention_mask, cache_position=flow.tensor(4)
    )
    want = [[2 <= s <= 4 for s in range(SLOTS)], [3 <= s <= 5 for s in range(SLOTS)]]
    assert mask[0, 0].tolist() == want


def test_split_heads_stay_where_they_are():
    place, split = flow.placement("cpu", [0, 1]), flow.sbp.split
    cache = KeyValues(*(flow.zeros(B, 2, SLOTS, 4, placement=place, sbp=split(1)) for _ in "kv"))
    new = flow.randn(B, 2, 1, 4)
    with flow.no_grad(), flow.boxing_policy("error"):
        k, v = cache.extend(*(new.to_global(place, split(1)) for _ in "kv"), flow.tensor(7))
    assert k.sbp == cache.v.sbp == (split(1),)
    np.testing.assert_array_equal(k.numpy()[:, :, 7:8], new.numpy())
    assert (np.delete(v.numpy(), 7, axis=2) == 0).all()
