"""Padding and packing of sequences against PyTorch's."""

import numpy as np
import pytest
import torch
from torch.nn.utils import rnn as theirs

import sbpjax as flow
from sbpjax.nn.utils import rnn as ours


def rows(make):
    return [make(np.arange(n * 2, dtype=np.float32).reshape(n, 2) + n) for n in (2, 4, 1)]


@pytest.mark.parametrize("options", [{}, {"batch_first": True, "padding_value": -1.0}, {"padding_side": "left"}])
def test_pad_sequence(options):
    a, b = ours.pad_sequence(rows(flow.tensor), **options), theirs.pad_sequence(rows(torch.tensor), **options)
    assert a.tolist() == b.tolist()


@pytest.mark.parametrize("batch_first", [True, False])
def test_pack_and_pad_again(batch_first):
    a = ours.pack_sequence(rows(flow.tensor), enforce_sorted=False)
    b = theirs.pack_sequence(rows(torch.tensor), enforce_sorted=False)
    for x, y in zip(a, b, strict=True):
        assert x.tolist() == y.tolist()
    (x, n), (y, m) = ours.pad_packed_sequence(a, batch_first), theirs.pad_packed_sequence(b, batch_first)
    assert x.tolist() == y.tolist() and n.tolist() == m.tolist()
    for x, y in zip(ours.unpack_sequence(a), theirs.unpack_sequence(b), strict=True):
        assert x.tolist() == y.tolist()
    assert a.to(flow.float64).data.dtype == flow.float64 and not a.is_cuda


def test_global_sequences_pack():
    placement = flow.placement("cpu", [0, 1])
    x = flow.arange(24).reshape(4, 3, 2).to_global(placement, flow.sbp.split(1))
    packed = ours.pack_padded_sequence(x, flow.tensor([4, 2, 1]))
    want = theirs.pack_padded_sequence(torch.arange(24).reshape(4, 3, 2), torch.tensor([4, 2, 1]))
    assert packed.data.tolist() == want.data.tolist()
    assert ours.pad_packed_sequence(packed)[0].tolist() == theirs.pad_packed_sequence(want)[0].tolist()


def test_errors():
    with pytest.raises(RuntimeError, match="empty list"):
        ours.pad_sequence([])
    with pytest.raises(ValueError, match="at least the length"):
        ours.pad_packed_sequence(ours.pack_sequence(rows(flow.tensor), enforce_sorted=False), total_length=2)
