"""Averaged models, their rate and their batch statistics, against PyTorch's."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.optim import swa_utils


def models():
    flow.manual_seed(0)
    ours = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.BatchNorm1d(4))
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    return ours, theirs


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("ema", [None, 0.8])
def test_averages_equal_torchs(ema, use_buffers):
    ours, theirs = models()
    kept = [] if ema is None else [m.get_ema_multi_avg_fn(ema) for m in (swa_utils, torch.optim.swa_utils)]
    options = [{"use_buffers": use_buffers} | ({"multi_avg_fn": k} if k else {}) for k in kept or (None, None)]
    mine = swa_utils.AveragedModel(ours, **options[0])
    reference = torch.optim.swa_utils.AveragedModel(theirs, **options[1])
    rng = np.random.default_rng(0)
    for _ in range(3):
        x = rng.standard_normal((5, 3)).astype(np.float32)
        ours(flow.tensor(x))
        theirs(torch.tensor(x))
        with flow.no_grad(), torch.no_grad():
            ours[0].weight.add_(flow.tensor(x[:4]))
            theirs[0].weight.add_(torch.tensor(x[:4]))
        mine.update_parameters(ours)
        reference.update_parameters(theirs)
    assert mine.state_dict().keys() == reference.state_dict().keys()
    for key, value in reference.state_dict().items():
        np.testing.assert_allclose(mine.state_dict()[key].numpy(), value.numpy(), rtol=1e-6, atol=1e-6)

    batches = [rng.standard_normal((5, 3)).astype(np.float32) for _ in range(3)]
    swa_utils.update_bn([(flow.tensor(b), 0) for b in batches], mine)
    torch.optim.swa_utils.update_bn([(torch.tensor(b), 0) for b in batches], reference)
    norm, other = mine.module[1], reference.module[1]
    assert norm.momentum == other.momentum
    np.testing.assert_allclose(norm.running_var.numpy(), other.running_var.numpy(), rtol=1e-5)


def test_an_average_of_its_own():
    model = flow.nn.Linear(1, 1, bias=False)
    mine = swa_utils.AveragedModel(model, avg_fn=lambda averaged, current, count: averaged * 0 + count.float())
    for expected in (None, 1.0, 2.0):
        mine.update_parameters(model)
        if expected is not None:
            assert mine.module.weight.item() == expected
    assert mine.n_averaged.item() == 3
    with pytest.raises(ValueError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(model, avg_fn=min, multi_avg_fn=min)
    with pytest.raises(ValueError, match="Invalid decay value 1.5"):
        swa_utils.get_ema_avg_fn(1.5)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("anneal", [0, 1, 4])
def test_rate_equals_torchs_after_another_schedule(anneal, strategy):
    rates = []
    for package, tensor in ((flow.optim, flow.ones), (torch.optim, torch.ones)):
        optimizer = package.SGD([tensor(1).requires_grad_()], lr=0.5)
        decay = package.lr_scheduler.ExponentialLR(optimizer, 0.9)
        swa = package.swa_utils.SWALR(optimizer, 0.05, anneal_epochs=anneal, anneal_strategy=strategy)
        found = [optimizer.param_groups[0]["lr"]]
        for step in range(9):
            optimizer.step()
            (decay if step < 3 else swa).step()
            found.append(optimizer.param_groups[0]["lr"])
        rates.append(found)
    np.testing.assert_allclose(*rates, rtol=1e-12)
