"""The classic losses against PyTorch's: value and gradient, local, with the batch split, with the classes split."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close

LOSSES = [
    ("MSELoss", {}, "float"),
    ("L1Loss", {}, "float"),
    ("SmoothL1Loss", {"beta": 0.5}, "float"),
    ("HuberLoss", {"delta": 0.5}, "float"),
    ("CrossEntropyLoss", {}, "index"),
    ("CrossEntropyLoss", {"ignore_index": 1, "label_smoothing": 0.1}, "index"),
    ("CrossEntropyLoss", {"weight": True}, "index"),
    ("CrossEntropyLoss", {}, "probability"),
    ("NLLLoss", {"weight": True}, "index"),
    ("BCELoss", {}, "unit"),
    ("BCEWithLogitsLoss", {"pos_weight": True}, "probability"),
    ("KLDivLoss", {"log_target": False}, "probability"),
]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")  # PyTorch's, on KLDivLoss
@pytest.mark.parametrize("where", ["local", "split batch", "split classes"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "options", "kind"), LOSSES, ids=str)
def test_loss_equals_torchs(name, options, kind, reduction, where):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((8, 4)).astype(np.float32)
    target = {
        "float": rng.standard_normal((8, 4)).astype(np.float32),
        "index": np.random.default_rng(0).integers(0, 4, (8,)),
        "probability": rng.dirichlet(np.ones(4), 8).astype(np.float32),
        "unit": rng.random((8, 4)).astype(np.float32),
    }[kind]
    if kind == "unit":
        data = 1 / (1 + np.exp(-data))
    weight = np.array([0.5, 1.0, 2.0, 0.0], np.float32)
    mine = {k: flow.tensor(weight) if v is True else v for k, v in options.items()}
    other = {k: torch.tensor(weight) if v is True else v for k, v in options.items()}
    ours = getattr(nn, name)(**mine, reduction=reduction)
    theirs = getattr(torch.nn, name)(**other, reduction=reduction)
    x, t = flow.tensor(data), flow.tensor(target)
    if where != "local":
        placement = flow.placement("cpu", [0, 1, 2, 3])
        ours.to_global(placement, flow.sbp.broadcast)
        x = x.to_global(placement, flow.sbp.split(0 if where == "split batch" else 1))
        t = t.to_global(placement, flow.sbp.split(0) if where == "split batch" else flow.sbp.broadcast)
    x.requires_grad_()
    y = torch.tensor(data, requires_grad=True)
    a, b = ours(x, t), theirs(y, torch.tensor(target))
    close(a, b)
    a.sum().backward()
    b.sum().backward()
    close(x.grad, y.grad)


def test_losses_check_their_reduction():
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        nn.MSELoss(reduction="average")


def test_kl_div_batchmean():
    x, t = np.log(np.full((4, 2), 0.5, np.float32)), np.array([[0.1, 0.9]] * 4, np.float32)
    ours = nn.KLDivLoss(reduction="batchmean")(flow.tensor(x), flow.tensor(t))
    close(ours, torch.nn.KLDivLoss(reduction="batchmean")(torch.tensor(x), torch.tensor(t)))


@pytest.mark.filterwarnings("ignore:size_average and reduce:UserWarning")
def test_the_old_options_of_losses_choose_the_reduction():
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    for options in ({"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True}):
        ours = nn.MSELoss(**options)(flow.tensor(x), flow.tensor(y))
        close(ours, torch.nn.MSELoss(**options)(torch.tensor(x), torch.tensor(y)))
    assert nn.functional.cross_entropy(flow.ones(2, 3), flow.tensor([0, 1]), None, False).item() > 2


@pytest.mark.filterwarnings("ignore:Using a target size:UserWarning")
def test_weighted_squared_error():
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1.0, 2.0, 0.0], np.float32)
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        for reduction in ("mean", "sum", "none"):
            ours = getattr(nn.functional, name)(
                flow.tensor(x), flow.zeros(2, 3), weight=flow.tensor(np.stack([w, w])), reduction=reduction
            )
            theirs = getattr(torch.nn.functional, name)(
                torch.tensor(x), torch.zeros(2, 3), weight=torch.tensor(np.stack([w, w])), reduction=reduction
            )
            close(ours, theirs)
