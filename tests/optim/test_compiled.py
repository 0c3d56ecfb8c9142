"""Optimizers inside `sbpjax.compile`: numbers of eager steps, no compilation for a new rate, no tracer left behind."""

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim

STEPS = 4
TOLERANCE = 1e-5  # float32; the compiled program sums in another order

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "adamw": lambda p: optim.AdamW(p, lr=0.05),
    "groups": lambda p: optim.Adam([{"params": p[:1], "lr": 0.01}, {"params": p[1:], "amsgrad": True}], lr=0.05),
}


class Net(nn.Module):
    """Two layers, and one that the loss does not reach."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 2)
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        return self.down(nn.functional.relu(self.up(x)))


def setting(name, placement):
    flow.manual_seed(0)
    net = Net()
    if placement is not None:
        net.to_global(placement, flow.sbp.broadcast)
        net.up.to_global(sbp=flow.sbp.split(0))
    optimizer = OPTIMIZERS[name](list(net.parameters()))
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)

    def step(x):
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        return loss.detach()

    return net, optimizer, scheduler, step


def batches(placement):
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        x = flow.tensor(rng.standard_normal((8, 4)).astype(np.float32))
        yield x if placement is None else x.to_global(placement, flow.sbp.split(0))


@pytest.mark.parametrize("ranks", [None, [0, 1, 2, 3]], ids=["local", "global"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_steps_are_eager_steps(name, ranks, compilations):
    placement = None if ranks is None else flow.placement("cpu", ranks)
    net, optimizer, scheduler, step = setting(name, placement)
    eager = []
    for x in batches(placement):
        eager.append(step(x).item())
        scheduler.step()
    expected = [p.detach().numpy() for p in net.parameters()]

    net, optimizer, scheduler, step = setting(name, placement)
    sbps = [p.sbp for p in net.parameters() if p.is_global]
    compiled = flow.compile(step, state=(net, optimizer))
    losses = []
    for i, x in enumerate(batches(placement)):
        if i == 2:
            with compilations as made:
                losses.append(compiled(x).item())
            assert made.count == 0  # though the rate changed
        else:
            losses.append(compiled(x).item())
        scheduler.step()
    np.testing.assert_allclose(losses, eager, rtol=TOLERANCE)
    for p, value in zip(net.parameters(), expected):
        np.testing.assert_allclose(p.detach().numpy(), value, rtol=TOLERANCE, atol=TOLERANCE)
    assert [p.sbp for p in net.parameters() if p.is_global] == sbps
    assert all(not isinstance(t._array, jax.core.Tracer) for t in optimizer.state_tensors())
    assert {int(s["step"].item()) for p, s in optimizer.state.items() if p is not net.unused.weight} >= {STEPS}


def test_an_option_that_changes_the_formula_compiles_anew():
    net, optimizer, scheduler, step = setting("sgd", None)
    compiled = flow.compile(step, state=(net, optimizer))
    (x, *_) = batches(None)
    compiled(x)
    optimizer.param_groups[0]["nesterov"] = True
    compiled(x)
    assert len(compiled._programs) == 2
