"""Hooks of all modules against PyTorch's, and hooks by their old names."""

import pytest
import torch

import sbpjax as flow
from sbpjax import nn


def calls_of_hooks(package, hooks):
    """Return what hooks of all modules see of one batch norm's life."""
    seen = []
    handles = [
        hooks.register_module_full_backward_pre_hook(lambda m, g: seen.append(("pre", g[0].sum().item()))),
        hooks.register_module_full_backward_hook(lambda m, i, o: seen.append(("post", o[0].sum().item()))),
        hooks.register_module_forward_hook(lambda m, a, k, o: seen.append(("forward", len(k))), with_kwargs=True),
        hooks.register_module_parameter_registration_hook(lambda m, n, p: seen.append(n)),
        hooks.register_module_buffer_registration_hook(lambda m, n, b: seen.append(n)),
        hooks.register_module_module_registration_hook(lambda m, n, c: seen.append(n)),
    ]
    model = package.nn.Sequential(package.nn.BatchNorm1d(2))
    model(package.ones(2, 2, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    model(package.ones(2, 2))
    return seen


def test_hooks_for_all_modules():
    assert calls_of_hooks(flow, nn) == calls_of_hooks(torch, torch.nn.modules.module)


def test_old_names():
    layer = nn.Linear(2, 2)
    seen = []
    layer.register_backward_hook(lambda m, i, o: seen.append(o))
    layer(flow.ones(1, 2)).sum().backward()
    assert len(seen) == 1 and layer.share_memory() is layer and nn.Linear.training is True
    assert layer.type(flow.float64).weight.dtype == flow.float64
    with pytest.raises(RuntimeError, match="use .to_global instead"):
        layer.to_consistent()
    with pytest.raises(TypeError, match="unexpected keyword argument 'width'"):
        nn.Module(width=3)
