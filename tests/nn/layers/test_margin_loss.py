"""Losses of margins, counts, variances, several labels and unaligned sequences against PyTorch's."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close

LOSSES = [
    ("MarginRankingLoss", {"margin": 0.3}, "xyt"),
    ("HingeEmbeddingLoss", {"margin": 0.5}, "xt"),
    ("CosineEmbeddingLoss", {"margin": 0.1}, "xyr"),
    ("SoftMarginLoss", {}, "xt"),
    ("MultiMarginLoss", {"p": 2}, "xc"),
    ("MultiLabelMarginLoss", {}, "xl"),
    ("MultiLabelSoftMarginLoss", {}, "xu"),
    ("PoissonNLLLoss", {"full": True}, "xu"),
    ("GaussianNLLLoss", {"full": True}, "xyv"),
    ("TripletMarginLoss", {"swap": True}, "xyz"),
    ("TripletMarginWithDistanceLoss", {"margin": 2.0, "swap": True}, "xyz"),
    ("CosineSimilarity", {"dim": 1}, "xy"),
    ("PairwiseDistance", {"p": 1.0, "keepdim": True}, "xy"),
]


@pytest.mark.parametrize(("name", "options", "kinds"), LOSSES, ids=str)
def test_loss_equals_torchs(name, options, kinds):
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal((4, 5)).astype(np.float32) for _ in range(3))
    signs = np.sign(rng.standard_normal((4, 5))).astype(np.float32)
    arrays = {
        "x": x, "y": y, "z": z, "t": signs, "r": signs[:, 0], "c": rng.integers(0, 5, 4), "u": (signs > 0) * 1.0,
        "l": np.array([[1, 0, -1, 2, 2]] * 4), "v": np.abs(z) + 0.1,
    }  # fmt: skip
    arrays["u"] = arrays["u"].astype(np.float32)
    for reduction in ("mean", "none") if "Loss" in name else (None,):
        extra = {} if reduction is None else {"reduction": reduction}
        ours, theirs = getattr(nn, name)(**options, **extra), getattr(torch.nn, name)(**options, **extra)
        assert repr(ours) == repr(theirs)
        a = flow.tensor(x, requires_grad=True)
        b = torch.tensor(x, requires_grad=True)
        va = ours(a, *[flow.tensor(arrays[k]) for k in kinds[1:]])
        vb = theirs(b, *[torch.tensor(arrays[k]) for k in kinds[1:]])
        close(va, vb)
        va.sum().backward()
        vb.sum().backward()
        close(a.grad, b.grad)


def test_ctc_loss_equals_torchs_under_a_split_batch():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((7, 4, 5)).astype(np.float32)
    targets, given, wanted = rng.integers(1, 5, (4, 3)), [7, 7, 6, 5], [3, 2, 1, 3]
    ours, theirs = nn.CTCLoss(), torch.nn.CTCLoss()
    b = torch.tensor(x, requires_grad=True)
    vb = theirs(b.log_softmax(2), torch.tensor(targets), tuple(given), tuple(wanted))
    vb.backward()
    a = flow.tensor(x).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(1)).requires_grad_()
    t = flow.tensor(targets).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    va = ours(flow.nn.functional.log_softmax(a, 2), t, given, wanted)
    va.backward()
    close(va, vb)
    close(a.grad, b.grad)
