import numpy as np
import pytest

import sbpjax as flow
from sbpjax.models.layers import attention_mask

TOKENS = flow.zeros(2, 4)


def test_there_is_no_mask_where_causal_says_it_all():
    assert attention_mask(TOKENS, causal=True) == (None, True)
    assert attention_mask(TOKENS, causal=True, window=4) == (None, True)
    assert attention_mask(TOKENS, causal=False) == (None, False)
    assert attention_mask(TOKENS, causal=False, window=1) == (None, False)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [None, 2])
def test_windows_and_padding(causal, window):
    present = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    mask, is_causal = attention_mask(TOKENS, causal=causal, window=window, present=flow.tensor(present))
    want = np.broadcast_to(present.astype(bool)[:, None, None], (2, 1, 4, 4))
    if causal:
        behind = np.arange(4)[:, None] - np.arange(4)
        want = want & (behind >= 0) & (behind < (window or 4))
    assert not is_causal
    np.testing.assert_array_equal(np.broadcast_to(mask.numpy(), want.shape), want)


def test_a_mask_of_tokens_on_a_mesh_lies_there():
    place = flow.placement("cpu", [0, 1])
    tokens = TOKENS.to_global(place, flow.sbp.split(0))
    mask, _ = attention_mask(tokens, causal=True, window=2, present=tokens == 0)
    assert mask.placement == place and mask.shape == (2, 1, 4, 4)


def test_rows_that_begin_at_slots_of_their_own():
    tokens, at = flow.zeros(2, 2, dtype=flow.int64), flow.tensor([1, 0])
    present = flow.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
    mask, is_causal = attention_mask(tokens, causal=True, present=present, at=at)
    alone = [
        attention_mask(tokens[i : i + 1], causal=True, present=present[i : i + 1], at=at[i])[0].tolist()[0]
        for i in range(2)
    ]
    assert not is_causal and mask.shape == (2, 1, 2, 4) and mask.tolist() == alone
