"""A cache gives what the whole sequence would: token by token, in parts, and on a mesh."""

import numpy as np

import sbpjax as flow
from sbpjax.models.layers import Attention, KeyValues, attention_mask, rotation

B, T, SLOTS = 2, 6, 9


def layer():
    flow.manual_seed(0)
    return Attention(16, 4, kv_heads=2, head_dim=4)


def test_parts_of_a_sequence_give_the_whole():
    attention, x = layer(), flow.randn(B, T, 16)
    whole = attention(x, rotation(flow.arange(T), 4, 100.0), None, True)
    cache = KeyValues(*(flow.zeros(B, 2, SLOTS, 4) for _ in "kv"))
    found = []
    with flow.no_grad():
        for start, stop in ((0, 3), (3, 4), (4, 6)):
            part, at = x[:, start:stop], flow.tensor(start)
            present = (flow.arange(SLOTS) < stop).long().expand(B, SLOTS)
            mask, is_causal = attention_mask(part[..., 0], causal=True, present=present, at=at)
            assert mask.shape == (B, 1, stop - start, SLOTS)
            turns = rotation(flow.arange(start, stop), 4, 100.0)
            found.append(attention(part, turns, mask, is_causal, cache, at))
    np.testing.assert_allclose(flow.cat(found, 1).numpy(), whole.detach().numpy(), rtol=1e-4, atol=1e-5)
    assert cache.k[:, :, T:].abs().sum() == 0


def test_a_window_hides_what_is_far_behind():
    present = flow.ones(1, SLOTS, dtype=flow.int64)
    mask, _ = attention_mask(flow.zeros(1, 2), causal=True, window=3, present=present, at=flow.tensor(4))
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
