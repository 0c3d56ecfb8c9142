"""Lazy updates of tables: rows without gradient stay, state included; numbers of PyTorch's SparseAdam."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.nn import functional as F

STEPS = 20
ROWS, WIDTH = 12, 4
TOLERANCE = 2e-6  # a few units in the last place of float32
LINE = flow.placement("cpu", [0, 1, 2, 3])


def table():
    return np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32)


def batch(step):
    rng = np.random.default_rng(step)
    return rng.integers(0, ROWS // 2, 3), rng.standard_normal(WIDTH)


def make(sbp):
    weight = flow.tensor(table())
    return nn.Parameter(weight if sbp is None else weight.to_global(LINE, sbp))


def loss_of(weight, ids, target):
    return ((F.embedding(ids, weight) - target) ** 2).sum()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("sbp", [None, "B", "S0", "S1"])
def test_adam_equals_torchs_sparse_adam(sbp, compiled):
    weight = make(sbp)
    optimizer = optim.Adam([{"params": [weight], "is_sparse": True}], lr=0.05, eps=1e-12)
    other = torch.nn.Embedding(ROWS, WIDTH, sparse=True, _weight=torch.tensor(table()))
    reference = torch.optim.SparseAdam(other.parameters(), lr=0.05, eps=1e-12)

    def step(ids, target):
        optimizer.zero_grad()
        loss_of(weight, ids, target).backward()
        optimizer.step()

    run = flow.compile(step, state=([weight], optimizer)) if compiled else step
    for i in range(STEPS):
        ids, target = batch(i)
        tensors = flow.tensor(ids), flow.tensor(target.astype(np.float32))
        run(*(t if sbp is None else t.to_global(LINE, "B") for t in tensors))
        reference.zero_grad()
        ((other(torch.tensor(ids)) - torch.tensor(target.astype(np.float32))) ** 2).sum().backward()
        reference.step()
    state = optimizer.state[weight]
    np.testing.assert_allclose(weight.detach().numpy(), other.weight.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)
    for name in ("exp_avg", "exp_avg_sq"):
        expected = reference.state[other.weight][name].numpy()
        np.testing.assert_allclose(state[name].numpy(), expected, rtol=TOLERANCE, atol=TOLERANCE)
    untouched = np.arange(ROWS // 2, ROWS)
    np.testing.assert_array_equal(weight.detach().numpy()[untouched], table()[untouched])


@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
        lambda p: optim.AdamW(p, lr=0.1),
        lambda p: optim.Adagrad(p, lr=0.1, weight_decay=0.1),
    ],
    ids=["sgd", "adamw", "adagrad"],
)
def test_rows_without_gradient_keep_value_and_state(make_optimizer):
    weight = make(None)
    optimizer = make_optimizer([weight])
    optimizer.use_sparse_updates()
    for rows in ([0, 3], [3, 5]):
        before = weight.detach().numpy().copy()
        states = {n: t.numpy().copy() for n, t in optimizer.state.get(weight, {}).items()}
        grad = np.zeros((ROWS, WIDTH), np.float32)
        grad[rows] = 1.0
        grad[rows, 0] = 0.0  # a zero within a row that has a gradient does not count
        weight.grad = flow.tensor(grad)
        optimizer.step()
        others = [i for i in range(ROWS) if i not in rows]
        after = weight.detach().numpy()
        np.testing.assert_array_equal(after[others], before[others])
        assert (after[rows][:, 1:] != before[rows][:, 1:]).all()
        for name, old in states.items():
            if name != "step":
                np.testing.assert_array_equal(optimizer.state[weight][name].numpy()[others], old[others])


def test_vectors_have_no_rows():
    bias = nn.Parameter(flow.ones(3))
    optimizer = optim.SGD([bias], lr=0.5, weight_decay=0.5)
    optimizer.use_sparse_updates()
    bias.grad = flow.tensor([1.0, 0.0, 0.0])
    optimizer.step()
    assert bias.tolist() == [0.25, 0.75, 0.75]


def test_an_update_that_moves_all_rows_is_refused():
    for make_optimizer in (
        lambda: optim.LAMB([{"params": [make(None)], "is_sparse": True}]),
        lambda: optim.RMSprop([make(None)]).use_sparse_updates(),
    ):
        with pytest.raises(ValueError, match="has no sparse form"):
            make_optimizer()


def test_a_parameter_that_holds_rows_of_a_larger_table():
    """Any optimizer updates it by rows, and it alone; or refuses it; and its owner is told of the optimizer."""
    found = []
    weight, other = make(None), make(None)
    optim.mark_row_table(weight, found.append)
    optimizer = optim.Adam([weight, other], lr=0.1, weight_decay=0.1)
    assert found == [optimizer]
    (F.embedding(flow.tensor([1, 2]), weight, sparse=True).sum() + other.sum()).backward()
    optimizer.step()
    moved = np.abs(weight.detach().numpy() - table()).max(1) > 0
    assert np.flatnonzero(moved).tolist() == [1, 2]
    assert (np.abs(other.detach().numpy() - table()).max(1) > 0).all()
    with pytest.raises(ValueError, match="moves rows without gradient too"):
        optim.LAMB([weight])
