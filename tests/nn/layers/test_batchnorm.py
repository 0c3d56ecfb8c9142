"""Batch norms of many devices, fused ones: against PyTorch's."""

import numpy as np
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close


def test_sync_batch_norm_takes_the_place_of_batch_norm():
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Sequential(nn.BatchNorm1d(2)))
    weight = model[1].weight
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert type(made[1]) is nn.SyncBatchNorm and made[1].weight is weight and type(made[2][0]) is nn.SyncBatchNorm
    x = np.random.default_rng(0).standard_normal((4, 3, 2, 2)).astype(np.float32)
    layer, reference = nn.SyncBatchNorm(3), torch.nn.BatchNorm2d(3)
    split = flow.tensor(x).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    layer.to_global(flow.placement("cpu", [0, 1]), flow.sbp.broadcast)
    close(layer(split), reference(torch.tensor(x)))
    close(layer.running_var, reference.running_var)


def test_fused_batch_norm_adds_and_cuts():
    x = np.random.default_rng(0).standard_normal((4, 3, 2, 2)).astype(np.float32)
    ours = nn.FusedBatchNorm2d(3)(flow.tensor(x), flow.tensor(x))
    close(ours, torch.relu(torch.nn.BatchNorm2d(3)(torch.tensor(x)) + torch.tensor(x)))
