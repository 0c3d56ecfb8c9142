"""Embeddings and bags of them against PyTorch's: output and gradients, local and laid out."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close, pair


def indices(shape, high):
    return np.random.default_rng(0).integers(0, high, shape)


@pytest.mark.parametrize("where", ["local", "split rows", "split features", "split batch"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}, {"max_norm": 1.5}], ids=str)
def test_embedding(options, where):
    ours, theirs = pair("Embedding", (8, 4), options)
    assert repr(ours) == repr(theirs)
    index = indices((4, 3), 8)
    x = flow.tensor(index)
    if where != "local":
        placement = flow.placement("cpu", [0, 1, 2, 3])
        sbp = {"split rows": flow.sbp.split(0), "split features": flow.sbp.split(1)}
        ours.to_global(placement, sbp.get(where, flow.sbp.broadcast))
        x = x.to_global(placement, flow.sbp.split(0) if where == "split batch" else flow.sbp.broadcast)
    a, b = ours(x), theirs(torch.tensor(index))
    close(a, b)
    (a * a).sum().backward()
    (b * b).sum().backward()
    close(ours.weight.grad, theirs.weight.grad)
    close(ours.weight, theirs.weight)


def test_embedding_from_pretrained():
    table = flow.arange(6).reshape(3, 2).to(flow.float32)
    layer = nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad and layer(flow.tensor([2, 0])).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    with pytest.raises(AssertionError, match="must be within num_embeddings"):
        nn.Embedding(3, 2, padding_idx=3)


BAGS = [
    ({"mode": "sum"}, (3, 4), None, None),
    ({"mode": "mean", "padding_idx": 2}, (3, 4), None, None),
    ({"mode": "max"}, (3, 4), None, None),
    ({"mode": "mean"}, (9,), [0, 3, 3, 7], None),
    ({"mode": "sum", "include_last_offset": True}, (9,), [0, 2, 5, 9], "weights"),
    ({"mode": "max", "padding_idx": 1}, (9,), [0, 4, 8], None),
    ({"mode": "sum", "max_norm": 1.0}, (3, 4), None, "weights"),
]


@pytest.mark.parametrize(("options", "shape", "offsets", "weighted"), BAGS, ids=str)
def test_embedding_bag(options, shape, offsets, weighted):
    ours, theirs = pair("EmbeddingBag", (6, 3), options)
    assert repr(ours) == repr(theirs)
    index = np.random.default_rng(0).integers(0, 6, shape)
    weight = np.random.default_rng(1).random(shape).astype(np.float32)
    given = [(t(index), *([t(offsets)] if offsets else [None])) for t in (flow.tensor, torch.tensor)]
    factors = [t(weight) if weighted else None for t in (flow.tensor, torch.tensor)]
    a, b = ours(*given[0], factors[0]), theirs(*given[1], factors[1])
    close(a, b)
    (a * a).sum().backward()
    (b * b).sum().backward()
    close(ours.weight.grad, theirs.weight.grad)


def test_embedding_bag_refuses_weights_of_means():
    with pytest.raises(NotImplementedError, match="mode='sum'"):
        nn.EmbeddingBag(4, 2)(flow.tensor([[0, 1]]), per_sample_weights=flow.ones(1, 2))
