"""Cases of PyTorch's database of modules that once differed, against PyTorch."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import mock_torch

BIAS = [None, flow.nn.InstanceNorm1d, flow.nn.InstanceNorm2d, flow.nn.InstanceNorm3d]
NORMS = [None, flow.nn.BatchNorm1d, flow.nn.BatchNorm2d, flow.nn.BatchNorm3d]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_instance_norm_without_bias(dims):
    x = numbers(2, 3, *[4] * dims)
    module = BIAS[dims](3, 1e-3, 0.3, affine=True, bias=False)
    reference = getattr(torch.nn, BIAS[dims].__name__)(3, 1e-3, 0.3, affine=True, bias=False)
    assert list(module.state_dict()) == list(reference.state_dict()) == ["weight"]
    wanted = reference(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(module(flow.tensor(x)).numpy(), wanted, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_batch_norm_of_no_rows_leaves_its_statistics(dims):
    module = NORMS[dims](3)
    x = flow.zeros(0, 3, *[2] * dims).requires_grad_()
    y = module(x)
    y.sum().backward()
    assert y.shape == x.shape and x.grad.shape == x.shape and module.weight.grad.tolist() == [0, 0, 0]
    assert module.running_mean.tolist() == [0, 0, 0] and module.running_var.tolist() == [1, 1, 1]


def test_batch_norm_refuses_an_eps_that_is_not_positive():
    x = flow.ones(2, 3)
    with pytest.raises(ValueError, match="eps must be positive"):
        flow.nn.BatchNorm1d(3, eps=-1.0)(x)
    flow.nn.BatchNorm1d(3, eps=-1.0).eval()(x)  # as in PyTorch
    with mock_torch.enable(), pytest.raises(ValueError, match="eps must be positive"):
        flow.nn.BatchNorm1d(3, eps=0.0)(x)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent_layer_refuses_another_dtype_and_no_features(kind):
    with pytest.raises(ValueError, match="does not match weight dtype"):
        getattr(flow.nn, kind)(3, 5)(flow.ones(2, 4, 3, dtype=flow.float64))
    with pytest.raises(ValueError, match="input_size must be greater than zero"):
        getattr(flow.nn, kind)(0, 5)
    with flow.autocast("cpu", dtype=flow.bfloat16):
        getattr(flow.nn, kind)(3, 5)(flow.ones(2, 4, 3, dtype=flow.bfloat16))


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_weights_of_classes_are_of_all_classes(name):
    x, target = flow.tensor(numbers(2, 3)), flow.tensor([0, 1])
    with pytest.raises(RuntimeError, match="all 3 classes or no classes"):
        getattr(flow.nn.functional, name)(x, target, weight=flow.ones(2))


def test_probabilities_have_no_ignored_index():
    x = flow.tensor(numbers(2, 3))
    with pytest.raises(RuntimeError, match="ignore_index is not supported"):
        flow.nn.functional.cross_entropy(x, x.softmax(1), ignore_index=1)


def test_nll_loss_refuses_weights_of_another_dtype():
    with pytest.raises(RuntimeError, match="expected scalar type"):
        flow.nn.functional.nll_loss(flow.ones(2, 3), flow.tensor([0, 1]), flow.ones(3, dtype=flow.float16))


LINEAR = {
    "plain": ({}, [3, 0, 2]),
    "ignored": ({"ignore_index": 2}, [3, 0, 2]),
    "bias": ({"bias": True, "reduction": "sum"}, [3, 0, 2]),
    "weights": ({"weight": [1.0, 2.0, 0.5, 1.5]}, [3, 0, 2]),
    "weights and smoothing": ({"weight": [1.0, 2.0, 0.5, 1.5], "label_smoothing": 0.1}, [3, 0, 2]),
    "features": ({"out_features": (2,), "bias": True, "reduction": "none"}, [[3, 0], [1, 1], [2, 0]]),
    "probabilities": ({"label_smoothing": 0.2}, None),
}


@pytest.mark.parametrize("case", LINEAR)
@pytest.mark.parametrize("one", [False, True], ids=["rows", "one row"])
def test_linear_cross_entropy_loss(case, one):
    options, target = LINEAR[case]
    if one and "out_features" in options:
        pytest.skip("PyTorch takes rows only")
    x = numbers(3, 5)
    values = np.abs(numbers(3, 4, seed=2)) if target is None else np.asarray(target)
    x, values = (x[0], values[0]) if one else (x, values)
    runs = []
    for library in (torch, flow):
        given = {k: library.tensor(v) if k == "weight" else v for k, v in options.items()}
        module = library.nn.LinearCrossEntropyLoss(5, 4, **given)
        for seed, p in enumerate(module.parameters(), 5):
            p.data.copy_(library.tensor(numbers(*p.shape, seed=seed)))
        leaf = library.tensor(x).requires_grad_()
        loss = module(leaf, library.tensor(values))
        loss.sum().backward()
        grads = [leaf.grad, *(p.grad for p in module.parameters())]
        runs.append((list(module.state_dict()), [v.detach().numpy() for v in (loss, *grads)]))
    assert runs[0][0] == runs[1][0]
    for wanted, got in zip(*(run[1] for run in runs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
