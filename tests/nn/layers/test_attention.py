"""Multi-head attention against PyTorch's: output, weights, gradients, masks."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from tests.support.torch_layers import close, pair

ATTENTION = [
    {},
    {"batch_first": True},
    {"bias": False, "kdim": 6, "vdim": 4, "batch_first": True},
    {"add_bias_kv": True, "add_zero_attn": True},
]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masks", [(), ("padding",), ("causal",), ("padding", "causal")], ids=str)
@pytest.mark.parametrize("options", ATTENTION, ids=str)
def test_multihead_attention_equals_torchs(options, masks, need_weights):
    ours, theirs = pair("MultiheadAttention", (8, 2), options)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    rng = np.random.default_rng(0)
    length, source, batch = 3, 5, 4
    arrays = [
        rng.standard_normal(
            (batch, n, width) if options.get("batch_first") else (n, batch, width),
        ).astype(np.float32)
        for n, width in ((length, 8), (source, options.get("kdim", 8)), (source, options.get("vdim", 8)))
    ]
    given = {}
    if "padding" in masks:
        given["key_padding_mask"] = np.arange(source)[None] > np.array([[4], [2], [3], [1]])
    if "causal" in masks:
        given["attn_mask"] = np.triu(np.ones((length, source), bool), 2)
    a, wa = ours(*map(flow.tensor, arrays), **{k: flow.tensor(v) for k, v in given.items()}, need_weights=need_weights)
    b, wb = theirs(
        *map(torch.tensor, arrays), **{k: torch.tensor(v) for k, v in given.items()}, need_weights=need_weights
    )
    close(a, b, "output")
    assert (wa is None) == (wb is None)
    if wa is not None:
        close(wa, wb, "weights")
    a.sum().backward()
    b.sum().backward()
    for (key, p), q in zip(ours.named_parameters(), theirs.parameters()):
        close(p.grad, q.grad, key)


@pytest.mark.parametrize("shape", [(3, 4), (3, 2), (1, 3), (3,), (2, 2, 3, 3), (2, 3, 3), (4, 3, 2), (4, 3, 3)])
@pytest.mark.parametrize("need_weights", [True, False])
def test_an_attention_mask_of_another_shape_is_refused(shape, need_weights):
    def outcome(package):
        x = package.ones(2, 3, 4)
        layer = package.nn.MultiheadAttention(4, 2, batch_first=True)
        return layer(x, x, x, attn_mask=package.zeros(*shape), need_weights=need_weights)

    if shape == (4, 3, 3):
        assert outcome(flow)[0].shape == outcome(torch)[0].shape
        return
    with pytest.raises((RuntimeError, AssertionError)) as wanted:
        outcome(torch)
    with pytest.raises(wanted.type, match=r"attn_mask to be None|should be \("):
        outcome(flow)


def test_attention_of_no_positions_is_empty():
    x = flow.ones(2, 0, 4)
    out, weights = flow.nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)
    assert out.shape == (2, 0, 4) and weights.shape == (2, 0, 0)


def test_multihead_attention_of_one_sample():
    ours, theirs = pair("MultiheadAttention", (8, 2), {})
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    a, wa = ours(flow.tensor(x), flow.tensor(x), flow.tensor(x), average_attn_weights=False)
    b, wb = theirs(torch.tensor(x), torch.tensor(x), torch.tensor(x), average_attn_weights=False)
    close(a, b)
    close(wa, wb)
