"""Initialisers: distributions with PyTorch's moments and bounds, constants, the same numbers under every layout."""

import math

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax.nn import init

SIGMAS = 5  # a sample moment that far off is a defect, not chance

DRAWS = [
    ("uniform_", (-1.0, 3.0), {}),
    ("normal_", (2.0, 0.5), {}),
    ("trunc_normal_", (), {"std": 0.5, "a": -0.6, "b": 0.3}),
    ("xavier_uniform_", (), {"gain": 2.0}),
    ("xavier_normal_", (), {}),
    ("kaiming_uniform_", (), {"a": math.sqrt(5)}),
    ("kaiming_uniform_", (), {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", (), {"nonlinearity": "relu"}),
]


@pytest.mark.parametrize(("name", "args", "options"), DRAWS, ids=str)
def test_distribution_is_torchs(name, args, options):
    shape = (40, 50, 5)
    flow.manual_seed(0)
    torch.manual_seed(0)
    tensor = flow.empty(*shape)
    assert getattr(init, name)(tensor, *args, **options) is tensor
    ours = tensor.numpy()
    theirs = getattr(torch.nn.init, name)(torch.empty(*shape), *args, **options).numpy()
    count, std = ours.size, theirs.std()
    assert abs(ours.mean() - theirs.mean()) < SIGMAS * std * math.sqrt(2 / count)
    assert abs(ours.std() / std - 1) < SIGMAS * math.sqrt(1 / count)
    if "uniform" in name or "trunc" in name:  # bounded: both samples come close to the same bounds
        assert abs(ours.max() - theirs.max()) < 0.01 * std and abs(ours.min() - theirs.min()) < 0.01 * std


@pytest.mark.parametrize("sbp", ["S0", "S1", "B"])
def test_numbers_do_not_depend_on_the_layout(sbp):
    flow.manual_seed(7)
    local = init.kaiming_uniform_(flow.empty(8, 6)).numpy()
    flow.manual_seed(7)
    tensor = flow.zeros(8, 6).to_global(flow.placement("cpu", [0, 1, 2, 3]), sbp)
    init.kaiming_uniform_(tensor)
    assert tensor.is_global
    np.testing.assert_array_equal(tensor.numpy(), local)


def test_constants():
    assert init.ones_(flow.empty(3)).tolist() == [1.0] * 3
    assert init.zeros_(flow.ones(3)).tolist() == [0.0] * 3
    assert init.constant_(flow.ones(2), 4.5).tolist() == [4.5, 4.5]
    assert init.eye_(flow.ones(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    for shape, groups in (((4, 2, 3), 1), ((4, 2, 3), 2), ((4, 4, 3, 2), 2)):
        ours, theirs = init.dirac_(flow.ones(*shape), groups), torch.nn.init.dirac_(torch.ones(*shape), groups)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (3, 4, 5)])
def test_orthogonal(shape):
    matrix = init.orthogonal_(flow.empty(*shape), gain=2.0).numpy().reshape(shape[0], -1)
    if matrix.shape[0] > matrix.shape[1]:
        matrix = matrix.T
    np.testing.assert_allclose(matrix @ matrix.T, 4 * np.eye(len(matrix)), atol=1e-5)


def test_sparse():
    matrix = init.sparse_(flow.empty(10, 7), sparsity=0.3).numpy()
    assert ((matrix == 0).sum(0) == 3).all()


def test_fans_and_gain():
    assert init.fans(flow.empty(6, 4)) == (4, 6) and init.fans(flow.empty(6, 4, 3, 2)) == (24, 36)
    for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu"):
        assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    assert init.calculate_gain("leaky_relu", 0.3) == torch.nn.init.calculate_gain("leaky_relu", 0.3)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: init.fans(flow.empty(3)), "fewer than 2 dimensions"),
        (lambda: init.calculate_gain("sine"), "Unsupported nonlinearity sine"),
        (lambda: init.kaiming_normal_(flow.empty(2, 2), mode="fan"), "Mode fan not supported"),
        (lambda: init.eye_(flow.empty(2)), "2 dimensions"),
        (lambda: init.orthogonal_(flow.empty(2)), "2 or more"),
        (lambda: init.dirac_(flow.empty(3, 2, 2), groups=2), "divisible by groups"),
    ],
)
def test_misuse(act, text):
    with pytest.raises(ValueError, match=text) as caught:
        act()
    assert all(part in str(caught.value) for part in ("(at ", "\n  seen: ", "\n  rule: ", "\n  fix:  "))


def test_leaves_and_the_tape_are_left_alone():
    weight = flow.nn.Parameter(flow.empty(4, 4))
    init.normal_(weight)
    assert weight.is_leaf and weight.requires_grad and weight.grad_fn is None
