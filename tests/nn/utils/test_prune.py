"""Pruning, against PyTorch's where nothing is random."""

import numpy as np
import pytest
import torch
import torch.nn.utils.prune as peer

import sbpjax as flow
from sbpjax.nn.utils import prune


def layers():
    """Return PyTorch's layer and ours with equal weights."""
    torch.manual_seed(0)
    theirs = torch.nn.Linear(6, 4)
    ours = flow.nn.Linear(6, 4)
    ours.load_state_dict({k: flow.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    return theirs, ours


def same(theirs, ours):
    wanted, found = theirs.state_dict(), ours.state_dict()
    assert list(found) == list(wanted)
    for key, value in wanted.items():
        np.testing.assert_array_equal(found[key].numpy(), value.numpy(), err_msg=key)
    x = np.random.default_rng(0).normal(size=(3, 6)).astype(np.float32)
    a, b = theirs(torch.from_numpy(x)), ours(flow.from_numpy(x))
    np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(ours.weight.detach().numpy(), theirs.weight.detach().numpy())


ONE = {
    "l1": lambda p, m, lib: p.l1_unstructured(m, "weight", amount=0.3),
    "l1 number": lambda p, m, lib: p.l1_unstructured(m, "weight", 5),
    "l1 scores": lambda p, m, lib: p.l1_unstructured(
        m,
        "weight",
        0.5,
        importance_scores=lib.arange(24.0).reshape(4, 6) % 7 * 1.1 + lib.arange(24.0).reshape(4, 6) / 99,
    ),
    "ln": lambda p, m, lib: p.ln_structured(m, "weight", amount=0.5, n=2, dim=0),
    "ln last": lambda p, m, lib: p.ln_structured(m, "weight", amount=2, n=1, dim=-1),
    "identity": lambda p, m, lib: p.identity(m, "bias"),
    "mask": lambda p, m, lib: p.custom_from_mask(m, "bias", mask=lib.tensor([1, 0, 1, 0])),
}


@pytest.mark.parametrize("name", ONE)
def test_same_as_pytorch(name):
    theirs, ours = layers()
    ONE[name](peer, theirs, torch)
    ONE[name](prune, ours, flow)
    same(theirs, ours)
    assert prune.is_pruned(ours)
    x = np.ones((2, 6), np.float32)
    theirs(torch.from_numpy(x)).sum().backward()
    ours(flow.from_numpy(x)).sum().backward()
    for (key, p), (_, q) in zip(theirs.named_parameters(), ours.named_parameters(), strict=True):
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy(), err_msg=key)


@pytest.mark.parametrize("first,second", [("ln", "l1 number"), ("l1", "ln last")])
def test_again(first, second):
    theirs, ours = layers()
    for name in (first, second):
        ONE[name](peer, theirs, torch)
        ONE[name](prune, ours, flow)
    same(theirs, ours)
    ((hook, _),) = ours._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2
    peer.remove(theirs, "weight")
    prune.remove(ours, "weight")
    same(theirs, ours)
    assert not prune.is_pruned(ours) and isinstance(ours.weight, flow.nn.Parameter)


def test_several_parameters_as_one():
    theirs, ours = layers()
    peer.global_unstructured([(theirs, "weight"), (theirs, "bias")], peer.L1Unstructured, amount=0.4)
    prune.global_unstructured([(ours, "weight"), (ours, "bias")], prune.L1Unstructured, amount=0.4)
    same(theirs, ours)


def test_random():
    _, ours = layers()
    prune.random_unstructured(ours, "weight", amount=0.25)
    assert int((ours.weight_mask == 0).sum()) == 6
    prune.random_structured(ours, "weight", amount=2, dim=1)
    assert int((ours.weight.abs().sum(dim=0) == 0).sum()) >= 2
    assert np.isfinite(ours(flow.ones(1, 6)).detach().numpy()).all()


def test_what_is_refused():
    _, ours = layers()
    for wrong, error in (("a", TypeError), (1.5, ValueError), (-1, ValueError), (99, ValueError)):
        with pytest.raises(error, match="amount"):
            prune.l1_unstructured(ours, "weight", amount=wrong)
    assert not prune.is_pruned(ours) and "weight" in dict(ours.named_parameters())
    with pytest.raises(ValueError, match="is pruned"):
        prune.remove(ours, "weight")
    with pytest.raises(ValueError, match="2 dims"):
        prune.ln_structured(ours, "bias", amount=1, n=2, dim=0)
    with pytest.raises(TypeError, match="only unstructured"):
        prune.global_unstructured([(ours, "weight")], prune.LnStructured, amount=1, n=2, dim=0)
