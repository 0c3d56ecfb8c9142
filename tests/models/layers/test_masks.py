import numpy as np
import pytest

import sbpjax as flow
from sbpjax.models.layers import make_attention_mask

TOKENS = flow.zeros(2, 4)


def test_there_is_no_mask_where_causal_says_it_all():
    assert make_attention_mask(TOKENS, causal=True) == (None, True)
    assert make_attention_mask(TOKENS, causal=True, window=4) == (None, True)
    assert make_attention_mask(TOKENS, causal=False) == (None, False)
    assert make_attention_mask(TOKENS, causal=False, window=1) == (None, False)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [None, 2])
def test_windows_and_padding(causal, window):
    attention_mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    mask, is_causal = make_attention_mask(
        TOKENS, causal=causal, window=window, attention_mask=flow.tensor(attention_mask)
    )
    want = np.broadcast_to(attention_mask.astype(bool)[:, None, None], (2, 1, 4, 4))
    if causal:
        behind = np.arange(4)[:, None] - np.arange(4)
        want = want & (behind >= 0) & (behind < (window or 4))
    assert not is_causal
    np.testing.assert_array_equal(np.broadcast_to(mask.numpy(), want.shape), want)


def test_a_mask_of_tokens_on_a_mesh_lies_there():
    place = flow.placement("cpu", [0, 1])
    input_ids = TOKENS.to_global(place, flow.sbp.split(0))
    mask, _ = make_attention_mask(input_ids, causal=True, window=2, attention_mask=input_ids == 0)
    assert mask.placement == place and mask.shape == (2, 1, 4, 4)


def test_rows_that_begin_at_slots_of_their_own():
    input_ids, cache_position = flow.zeros(2, 2, dtype=flow.int64), flow.tensor([1, 0])
    attention_mask = flow.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
    mask, is_causal = make_attention_mask(
        input_ids, causal=True, attention_mask=attention_mask, cache_position=cache_position
    )
    alone = [
        make_attention_mask(
            input_ids[i : i + 1],
            causal=True,
            attention_mask=attention_mask[i : i + 1],
            cache_position=cache_position[i],
        )[0].tolist()[0]
        for i in range(2)
    ]
    assert not is_causal and mask.shape == (2, 1, 2, 4) and mask.tolist() == alone
