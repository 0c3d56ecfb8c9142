"""Weight normalisation against PyTorch's: values, gradients, names; global, compiled, and taken off again."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.nn.utils import remove_weight_norm, weight_norm

TOLERANCE = 2e-6  # a few units in the last place of float32
LINE = flow.placement("cpu", [0, 1, 2, 3])
CASES = {
    "linear": (lambda m: m.Linear(4, 8), (5, 4), 0),
    "linear-columns": (lambda m: m.Linear(4, 8), (5, 4), 1),
    "linear-whole": (lambda m: m.Linear(4, 8), (5, 4), None),
    "conv": (lambda m: m.Conv2d(3, 4, 2), (2, 3, 5, 5), 0),
    "conv-inputs": (lambda m: m.Conv2d(3, 4, 2), (2, 3, 5, 5), 1),
}


def pair(case):
    make, shape, dim = CASES[case]
    torch.manual_seed(0)
    theirs, ours = make(torch.nn), make(nn)
    for name, param in theirs.named_parameters():
        getattr(ours, name).data = flow.tensor(param.detach().numpy())
    with pytest.warns(FutureWarning):
        theirs = torch.nn.utils.weight_norm(theirs, dim=dim)
    return weight_norm(ours, dim=dim), theirs, np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_equals_torch(case):
    ours, theirs, x = pair(case)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs).replace("Parametrized", "")
    optimizer, reference = optim.SGD(ours.parameters(), lr=0.1), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        reference.zero_grad()
        out, expected = ours(flow.tensor(x)), theirs(torch.tensor(x))
        np.testing.assert_allclose(out.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-5)
        (out**2).mean().backward()
        (expected**2).mean().backward()
        optimizer.step()
        reference.step()
    for name, param in theirs.named_parameters():
        mine = ours.get_parameter(name)
        assert mine.shape == param.shape
        np.testing.assert_allclose(mine.detach().numpy(), param.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("case", ["linear", "conv-inputs"])
def test_taken_off_the_weight_is_a_parameter_again(case):
    ours, _, x = pair(case)
    kind, before, weight = type(ours), ours(flow.tensor(x)).detach().numpy(), ours.weight.detach().numpy()
    assert remove_weight_norm(ours) is ours
    assert sorted(dict(ours.named_parameters())) == ["bias", "weight"] and type(ours) is not kind
    np.testing.assert_array_equal(ours.weight.detach().numpy(), weight)
    np.testing.assert_array_equal(ours(flow.tensor(x)).detach().numpy(), before)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_global_and_compiled(compiled):
    results = []
    for sbp in (None, "S0", "S1"):
        flow.manual_seed(0)
        layer = nn.Linear(4, 8)
        if sbp is not None:
            layer.to_global(LINE, flow.sbp.broadcast)
            layer.weight.data = layer.weight.data.to_global(LINE, sbp)
        layer = weight_norm(layer)
        optimizer = optim.Adam(layer.parameters(), lr=0.1)

        def step(x, layer=layer, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (layer(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = flow.compile(step, state=(layer, optimizer)) if compiled else step
        x = flow.tensor(np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32))
        x = x if sbp is None else x.to_global(LINE, flow.sbp.split(0))
        results.append([run(x).item() for _ in range(4)])
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-5)


def test_two_parameters_of_one_module_and_equal_modules_share_a_class():
    lstm = nn.Module()
    for name in ("a", "b"):
        setattr(lstm, name, nn.Parameter(flow.ones(2, 3)))
    weight_norm(weight_norm(lstm, "a"), "b", dim=None)
    assert sorted(dict(lstm.named_parameters())) == ["a_g", "a_v", "b_g", "b_v"]
    remove_weight_norm(lstm, "a")
    assert sorted(dict(lstm.named_parameters())) == ["a", "b_g", "b_v"]
    np.testing.assert_allclose(lstm.b.detach().numpy(), np.ones((2, 3)), rtol=TOLERANCE)
    first, second = (weight_norm(nn.Linear(2, 2)) for _ in range(2))
    assert type(first) is type(second) and isinstance(first, nn.Linear)
    twin = copy.deepcopy(first)
    assert type(twin) is type(first) and twin.weight_v is not first.weight_v


def test_copied_and_pickled():
    layer = weight_norm(nn.Linear(3, 4))
    for other in (copy.deepcopy(layer), copy.copy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other) is type(layer)
        np.testing.assert_array_equal(other.weight.detach().numpy(), layer.weight.detach().numpy())
        assert sorted(name for name, _ in other.named_parameters()) == ["bias", "weight_g", "weight_v"]
    other = copy.deepcopy(layer)
    with flow.no_grad():
        other.weight_g.mul_(2)
    np.testing.assert_allclose(other.weight.detach().numpy(), 2 * layer.weight.detach().numpy(), rtol=1e-6)


def test_bad_use():
    layer = weight_norm(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="two weight_norm hooks on the same parameter weight"):
        weight_norm(layer)
    with pytest.raises(ValueError, match="it has no 'kernel'"):
        weight_norm(nn.Linear(2, 2), "kernel")
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        remove_weight_norm(nn.Linear(2, 2))


@pytest.mark.parametrize("utils", ["utils", "utils.parametrizations"])
@pytest.mark.parametrize("dim", [None, -4, -3, -2, -1, 2, 3])
def test_dims_are_those_of_pytorch(utils, dim):
    def lengths(n):
        layer = n.Conv1d(3, 4, 2)
        normalise = n.utils.weight_norm if utils == "utils" else n.utils.parametrizations.weight_norm
        normalise(layer, dim=dim)
        return tuple(layer.weight_g.shape if utils == "utils" else layer.parametrizations.weight.original0.shape)

    if dim in (-4, 3):
        for n in (torch.nn, nn):
            with warnings.catch_warnings(), pytest.raises(IndexError, match=r"range of \[-3, 2\], but got"):
                warnings.simplefilter("ignore", FutureWarning)
                lengths(n)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = lengths(torch.nn)
    assert lengths(nn) == theirs
