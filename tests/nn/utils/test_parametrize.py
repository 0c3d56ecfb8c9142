"""Parametrisations, spectral norm, fusion, skipped first values: against PyTorch's."""

import copy
import functools

import numpy as np
import pytest
import torch
import torch.nn.utils.parametrize as their_parametrize

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn.utils import parametrizations, parametrize
from tests.support import compare

close = functools.partial(compare.close, rtol=2e-5, atol=2e-5)


def both(name, *args):
    theirs = getattr(torch.nn, name)(*args)
    ours = getattr(nn, name)(*args)
    ours.load_state_dict({k: flow.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def symmetric(package):
    class Symmetric(package.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x):
            return x.triu()

    return Symmetric()


def test_a_function_of_a_parameter():
    ours, theirs = both("Linear", 3, 3)
    parametrize.register_parametrization(ours, "weight", symmetric(flow))
    their_parametrize.register_parametrization(theirs, "weight", symmetric(torch))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    ours(flow.tensor(x)).square().sum().backward()
    theirs(torch.tensor(x)).square().sum().backward()
    close(ours.weight, theirs.weight)
    close(ours.parametrizations.weight.original.grad, theirs.parametrizations.weight.original.grad)
    value = np.eye(3, dtype=np.float32) * 2
    with flow.no_grad():
        ours.weight = flow.tensor(value)
    close(ours.weight, torch.tensor(value))
    twin = copy.deepcopy(ours)
    assert parametrize.is_parametrized(twin, "weight") and twin.weight is not ours.weight
    with parametrize.cached():
        assert ours.weight is ours.weight
    parametrize.remove_parametrizations(ours, "weight")
    assert type(ours) is nn.Linear and isinstance(ours.weight, nn.Parameter) and not parametrize.is_parametrized(ours)
    close(ours.weight, torch.tensor(value))


def test_two_functions_one_after_the_other():
    class Double(nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Double())
    parametrize.register_parametrization(layer, "weight", Double())
    close(layer.weight, before)
    close(layer.parametrizations.weight.original * 4, before)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(layer, "bases", Double())


def test_weight_norm_keeps_the_weight():
    ours, theirs = both("Linear", 4, 3)
    parametrizations.weight_norm(ours)
    torch.nn.utils.parametrizations.weight_norm(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for (key, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, err_msg=key)
    close(ours.weight, theirs.weight)


@pytest.mark.parametrize("old", [False, True])
def test_spectral_norm_makes_the_largest_singular_value_one(old):
    ours, theirs = both("Linear", 5, 4)
    norm = nn.utils.spectral_norm if old else parametrizations.spectral_norm
    their_norm = torch.nn.utils.spectral_norm if old else torch.nn.utils.parametrizations.spectral_norm
    norm(ours)
    their_norm(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x = flow.ones(2, 5)
    for _ in range(60):
        out = ours(x)
    out.sum().backward()
    assert abs(np.linalg.svd(ours.weight.detach().numpy())[1][0] - 1) < 1e-3
    ours.eval()
    close(ours(x), ours(x))
    if old:
        nn.utils.remove_spectral_norm(ours)
        assert isinstance(ours.weight, nn.Parameter) and list(ours.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize(("shape", "how"), [((4, 4), "matrix_exp"), ((3, 5), "cayley"), ((3, 5), "householder")])
def test_orthogonal(shape, how):
    ours, theirs = both("Linear", *shape)
    parametrizations.orthogonal(ours, orthogonal_map=how)
    torch.nn.utils.parametrizations.orthogonal(theirs, orthogonal_map=how)
    weight = ours.weight.detach().numpy()
    small = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-5)
    close(ours.weight, theirs.weight)
    ours.weight.sum().backward()


def test_orthogonal_by_householder_is_set_to_an_orthonormal_matrix():
    ours, theirs = both("Linear", 3, 5)
    given = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 3)))[0].astype(np.float32)
    for module, package in ((ours, flow), (theirs, torch)):
        package.nn.utils.parametrizations.orthogonal(module, orthogonal_map="householder")
        module.weight = package.tensor(given)
    close(ours.weight, theirs.weight)
    np.testing.assert_allclose(ours.weight.detach().numpy(), given, atol=1e-5)


def test_fusion_of_a_convolution_with_its_norm():
    flow.manual_seed(0)
    conv, bn = nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)
    x = flow.randn(4, 2, 5, 5)
    for _ in range(2):
        bn(conv(x))
    with pytest.raises(RuntimeError, match="only for eval"):
        nn.utils.fuse_conv_bn_eval(conv, bn)
    fused = nn.utils.fuse_conv_bn_eval(conv.eval(), bn.eval())
    close(fused(x), bn(conv(x)))


def test_skip_init():
    layer = nn.utils.skip_init(nn.Linear, 3, 4, dtype=flow.float64)
    assert layer.weight.dtype == flow.float64 and not layer.weight.is_meta and layer.weight.requires_grad
    with pytest.raises(RuntimeError, match="Expected a Module"):
        nn.utils.skip_init(dict)


def test_stateless_call():
    layer = nn.Linear(2, 1, bias=False)
    out = nn.utils.stateless.functional_call(layer, {"weight": flow.tensor([[2.0, 3.0]])}, flow.ones(1, 2))
    assert out.item() == 5.0


@pytest.mark.parametrize("normalise", [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm])
def test_a_spectral_norm_makes_an_iteration(normalise):
    with pytest.raises(ValueError, match="n_power_iterations to be positive"):
        normalise(nn.Linear(2, 2), n_power_iterations=0)
