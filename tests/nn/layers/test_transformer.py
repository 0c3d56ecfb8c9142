"""Transformers against PyTorch's: outputs, gradients, masks, states; local and with the batch split."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import numbers, pair, same

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")  # PyTorch's


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True, "norm_first": True, "activation": "gelu", "bias": False}], ids=str
)
def test_encoder_layer(options):
    ours, theirs = pair("TransformerEncoderLayer", (8, 2, 16, 0.0), options)
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    x = numbers(4, 4, 8)
    mask, padding = np.triu(np.ones((4, 4), bool), 1), np.arange(4)[None] > np.array([[3], [2], [3], [1]])
    given = [{"src_mask": t(mask), "src_key_padding_mask": t(padding)} for t in (flow.tensor, torch.tensor)]
    same(ours, theirs, ours(flow.tensor(x), **given[0]), theirs(torch.tensor(x), **given[1]))


def test_decoder_layer():
    ours, theirs = pair("TransformerDecoderLayer", (8, 2, 16, 0.0), {"norm_first": True})
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    x, memory = numbers(3, 2, 8), numbers(5, 2, 8, seed=1)
    masks = [m.generate_square_subsequent_mask(3) for m in (nn.Transformer, torch.nn.Transformer)]
    assert masks[0].tolist() == masks[1].tolist()
    a = ours(flow.tensor(x), flow.tensor(memory), tgt_mask=masks[0], tgt_is_causal=True)
    same(ours, theirs, a, theirs(torch.tensor(x), torch.tensor(memory), tgt_mask=masks[1], tgt_is_causal=True))


@pytest.mark.parametrize("where", ["local", pytest.param("split", marks=pytest.mark.exhaustive)])
def test_whole_transformer(where):
    options = {"num_encoder_layers": 1, "num_decoder_layers": 1, "dim_feedforward": 8, "dropout": 0.0}
    ours, theirs = pair("Transformer", (8, 2), {**options, "batch_first": True})
    assert list(ours.state_dict()) == list(theirs.state_dict())
    source, target = numbers(2, 3, 8), numbers(2, 4, 8, seed=1)
    x, y = flow.tensor(source), flow.tensor(target)
    if where == "split":
        placement = flow.placement("cpu", [0, 1])
        ours.to_global(placement, flow.sbp.broadcast)
        x, y = (t.to_global(placement, flow.sbp.split(0)) for t in (x, y))
    same(ours, theirs, ours(x, y), theirs(torch.tensor(source), torch.tensor(target)))


def test_errors():
    with pytest.raises(RuntimeError, match="d_model"):
        nn.Transformer(8, 2, 1, 1, 8)(flow.ones(2, 1, 4), flow.ones(2, 1, 4))
    with pytest.raises(RuntimeError, match="relu/gelu"):
        nn.TransformerEncoderLayer(8, 2, activation="tanh")
