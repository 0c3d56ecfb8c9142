"""A call that is made again the quick way does what the long way does, and sees every change."""

import jax
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.graph.program.fast_path import CACHE_MISS
from sbpjax.nn import functional as F

PLACE = flow.placement("cpu", [0, 1])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8, affine=False)
        self.down = nn.Linear(8, 2)
        self.slope = 0.5

    def forward(self, x):
        return self.down(F.leaky_relu(self.norm(self.up(x)), self.slope))


class Train(nn.Graph):
    def __init__(self, net, optimizer, schedule=None):
        super().__init__()
        self.net = net
        self.add_optimizer(optimizer, lr_sch=schedule)
        self.factor = 1.0

    def build(self, x, scale=1.0):
        loss = self.net(x).square().mean() * (self.factor * scale)
        loss.backward()
        return loss


class Twin:
    """A graph, with all that belongs to it; ``quick=False`` never takes the quick way."""

    def __init__(self, quick, place=None):
        flow.manual_seed(0)
        self.net, self.quick, self.place = Net(), quick, place
        if place is not None:
            self.net.to_global(place, flow.sbp.broadcast)
        self.optimizer = flow.optim.Adam(self.net.parameters(), lr=0.01)
        self.graph = Train(self.net, self.optimizer)
        self.quick_calls = 0

    def __call__(self, *args, **kwargs):
        last = self.graph._g.last
        if not self.quick and last is not None:
            last.fast_path = None
        if last is not None and last.fast_path is not None:
            again = last.fast_path.again

            class Counting:
                def again(_, args, kwargs, done=None):
                    result = again(args, kwargs, done)
                    self.quick_calls += result is not CACHE_MISS
                    return result

            last.fast_path = Counting()
        result = self.graph(*args, **kwargs)
        if last is not None and last.fast_path.__class__.__name__ == "Counting":
            last.fast_path = again.__self__
        return result

    def batch(self, rows=6, seed=0):
        x = flow.tensor(np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32))
        return x if self.place is None else x.to_global(self.place, flow.sbp.split(0))

    def values(self):
        return [t.numpy() for t in (*self.net.state_dict().values(), *self.optimizer.state_tensors())]


def same(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) and x.dtype == y.dtype for x, y in zip(a, b))


def halve(twin):
    twin.net.down.weight.data = twin.net.down.weight.detach() * 0.5


def replace_moment(twin):
    state = twin.optimizer.state[twin.net.up.weight]
    state["exp_avg"] = state["exp_avg"] * 0


def replace_bias(twin):
    twin.net.norm.running_mean = flow.ones(8)


def hold(twin):
    twin.held = twin.net.up.weight.jax(), twin.net.down.weight.detach()


CHANGES = {
    "nothing": lambda t: None,
    "lr": lambda t: t.optimizer.param_groups[0].update(lr=0.02),
    "lr quietly": lambda t: t.optimizer.param_groups[0].__setitem__("lr", 0.03),
    "lr, an integer": lambda t: t.optimizer.param_groups[0].__setitem__("lr", 1),
    "betas": lambda t: t.optimizer.param_groups[0].__setitem__("betas", (0.5, 0.9)),
    "a formula": lambda t: t.optimizer.param_groups[0].__setitem__("weight_decay", 0.1),
    "an attribute": lambda t: setattr(t.net, "slope", 0.25),
    "the graph's attribute": lambda t: setattr(t.graph, "factor", 2.0),
    "eval": lambda t: t.net.eval(),
    "frozen": lambda t: t.net.up.weight.requires_grad_(False),
    "data": halve,
    "in place": lambda t: t.net.down.bias.data.mul_(0.5),
    "a moment": replace_moment,
    "a buffer": replace_bias,
    "held": hold,
    "clipping": lambda t: t.graph.config.set_clip_grad_norm(0.01),
    "another child": lambda t: setattr(t.net, "norm", nn.Identity()),
    "a table": lambda t: t.net._modules.__setitem__("norm", nn.Tanh()),
}
QUICK = ["nothing", "lr", "lr quietly", "lr, an integer", "eval", "data", "in place", "a moment", "held", "a table"]


@pytest.mark.parametrize(
    "names", [QUICK, pytest.param(list(CHANGES), marks=pytest.mark.exhaustive)], ids=["some", "all"]
)
def test_every_change_is_seen(names):
    quick, long = Twin(True), Twin(False)
    for twin in (quick, long):
        for _ in range(3):
            twin(twin.batch())
    assert quick.graph._g.last.fast_path is not None
    for name in names:
        losses = []
        for twin in (quick, long):
            CHANGES[name](twin)
            losses.append([float(twin(twin.batch(seed=i))) for i in range(4)])
        assert losses[0] == losses[1], name
        assert same(quick.values(), long.values()), name
    assert long.quick_calls == 0
    assert quick.quick_calls >= len(names)  # the fourth call behind a change at the latest


def test_the_held_payload_keeps_its_value():
    twin = Twin(True)
    for _ in range(4):
        twin(twin.batch())
    assert twin.quick_calls == 2
    held = twin.net.up.weight.jax()
    before = np.array(held)
    for _ in range(3):
        twin(twin.batch())
    assert np.array_equal(np.asarray(held), before)
    assert not np.array_equal(twin.net.up.weight.numpy(), before)


def test_what_moves_now_and_then_goes_the_quick_way_in_between_and_what_always_does_is_not_tried_forever():
    twin = Twin(True)
    for _ in range(5):
        twin(twin.batch())
        twin.net.note = object()
        for _ in range(3):
            twin(twin.batch())
    assert twin.quick_calls == 9  # the third call behind a change, and the one before the next
    for _ in range(8):
        held = twin.net.up.weight.jax()
        twin(twin.batch())
    assert twin.graph._g.last.fast_path is None
    del held


def test_arguments_are_looked_at():
    quick, long = Twin(True), Twin(False)
    calls = [
        lambda t: t(t.batch()),
        lambda t: t(t.batch(seed=3)),
        lambda t: t(t.batch(rows=5)),
        lambda t: t(t.batch()),
        lambda t: t(t.batch(12)[::2]),
        lambda t: t(t.batch(), scale=2.0),
        lambda t: t(t.batch(), scale=2.0),
        lambda t: t(t.batch(), scale=2.0),
        lambda t: t(t.batch(), scale=2.0),
        lambda t: t(t.batch(), scale=3.0),
        lambda t: t(x=t.batch()),
        lambda t: t(t.batch().double().float()),
    ]
    for i, call in enumerate(calls * 2):
        assert float(call(quick)) == float(call(long)), i
    assert same(quick.values(), long.values())
    assert quick.quick_calls > 0


def test_a_schedule_goes_the_quick_way():
    twin = Twin(True)
    schedule = flow.optim.lr_scheduler.StepLR(twin.optimizer, 1, 0.5)
    twin.graph = Train(twin.net, twin.optimizer, schedule)
    rates = []
    for _ in range(6):
        twin(twin.batch())
        rates.append(twin.optimizer.param_groups[0]["lr"])
    assert rates == [0.01 * 0.5**i for i in range(1, 7)]
    assert twin.quick_calls == 4
    assert schedule.last_step == 6


def test_global_state_goes_the_quick_way_until_it_is_laid_out_anew():
    quick, long = Twin(True, PLACE), Twin(False, PLACE)
    for twin in (quick, long):
        for i in range(4):
            twin(twin.batch(seed=i))
        twin.net.up.to_global(PLACE, flow.sbp.split(0))
        for i in range(2):
            twin(twin.batch(seed=i))
    assert quick.quick_calls >= 1
    assert same(quick.values(), long.values())


def test_what_does_not_report_its_changes_goes_the_long_way():
    twin = Twin(True)
    twin.optimizer.param_groups[0] = dict(twin.optimizer.param_groups[0])
    for _ in range(4):
        twin(twin.batch())
    assert twin.quick_calls == 0
    assert twin.graph._g.last.fast_path is None

    class Own(Net):
        def __setattr__(self, name, value):
            if name == "slope":
                self.__dict__[name] = value
            else:
                super().__setattr__(name, value)

    net = Own()
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.0))
    x = twin.batch()
    first = [float(graph(x)) for _ in range(4)]
    net.slope = 100.0
    assert float(graph(x)) != first[-1]


@pytest.mark.parametrize("how", ["dtype", "device"])
def test_jax_refuses_a_state_of_another_kind_before_it_takes_anything(how):
    twin = Twin(True)
    for _ in range(4):
        twin(twin.batch())
    fast_path, weight = twin.graph._g.last.fast_path, twin.net.up.weight
    before = [weight._array]
    if how == "dtype":
        weight._array = before[0].astype("float64")
    else:
        weight._array = jax.device_put(before[0], jax.devices()[1])
    assert fast_path.again((twin.batch(),), {}) is CACHE_MISS
    weight._array = before.pop()
    assert fast_path.again((twin.batch(),), {}) is not CACHE_MISS
