"""Blocks: what is traced once gives what tracing every layer gives, and what is not plain is left alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tensor.storage.lazy_constant import LazyConstant
from sbpjax.graph.program.forward_backward import cotangent_p, split
from sbpjax.nn import functional as F
from tests.support import graphs

RUNS: list[str] = []
OUTSIDE = flow.tensor(np.full(8, 0.5, np.float32))


class Layer(nn.Module):
    def __init__(self, width=8, dropout=0.0):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        RUNS.append(type(self).__name__)
        return x + self.drop(F.gelu(self.linear(x)))


class Normed(Layer):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        return self.norm(super().forward(x))


class Detached(Layer):
    def forward(self, x):
        with flow.no_grad():
            scale = self.linear(x).abs().mean()
        return super().forward(x) * scale + x.detach() * 0.1


class Hooked(Layer):
    def __init__(self):
        super().__init__()
        self.linear.register_forward_hook(lambda module, args, out: out * 1.5)


class Counting(Layer):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class Writing(Layer):
    def forward(self, x):
        x.add_(1.0)
        return super().forward(x)


class Doubled(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3  # not the derivative, so that it shows who ran


class WithFunction(Layer):
    def forward(self, x):
        return super().forward(Doubled.apply(x)) * 0.1


class Net(nn.Module):
    def __init__(self, layer, count=4, **options):
        super().__init__()
        self.layers = nn.ModuleList(layer(**options) for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x * 1.0)
        return x


class Train(nn.Graph):
    def __init__(self, net, scan, create_graph=False):
        super().__init__()
        self.net = net
        self.create_graph = create_graph
        self.add_optimizer(flow.optim.SGD(net.parameters(), lr=0.05))
        self.config.enable_block_scan(scan)

    def build(self, x):
        if self.create_graph:
            x = (x * 1.0).requires_grad_()
            out = self.net(x)
            (grad,) = flow.autograd.grad((out * out).sum(), x, create_graph=True)
            loss = (grad * grad).mean()
        else:
            loss = (self.net(x) ** 2).mean()
        loss.backward()
        return loss


def train(layer, scan, steps=3, create_graph=False, **options):
    """Return the losses, the state after training, and how often a layer's Python ran."""
    flow.manual_seed(0)
    net = Net(layer, **options)
    graph = Train(net, scan, create_graph)
    flow.manual_seed(1)
    RUNS.clear()
    x = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    losses = [graph(flow.tensor(x)).item() for _ in range(steps)]
    return losses, {k: v.numpy() for k, v in net.state_dict().items()}, len(RUNS)


def compare(first, second, tolerance):
    np.testing.assert_allclose(first[0], second[0], rtol=tolerance)
    assert first[1].keys() == second[1].keys()
    for name, value in first[1].items():
        np.testing.assert_allclose(value, second[1][name], rtol=1e-4, atol=1e-5, err_msg=name)


PLAIN = [Layer, Normed, Detached, WithFunction]


@pytest.mark.parametrize("layer", PLAIN, ids=lambda c: c.__name__)
def test_equal_layers_are_traced_once_with_the_same_numbers(layer):
    apart, once = train(layer, False), train(layer, True)
    assert apart[2] == 4
    # the input needs no gradient, so the first layer's backward is another one
    assert once[2] <= 2
    compare(once, apart, 1e-5)


def test_random_numbers_are_those_of_layers_traced_apart():
    apart, once = train(Layer, False, dropout=0.5), train(Layer, True, dropout=0.5)
    assert once[2] < apart[2]
    compare(once, apart, 1e-5)


@pytest.mark.parametrize("layer", [Hooked, Counting, Writing], ids=lambda c: c.__name__)
def test_layers_that_do_more_than_compute_are_traced_one_by_one(layer):
    apart, once = train(layer, False), train(layer, True)
    assert once[2] >= apart[2]
    compare(once, apart, 1e-5)


def test_layers_that_differ_in_an_attribute_are_not_one():
    def net(scan):
        flow.manual_seed(0)
        net = Net(Layer, dropout=0.0)
        for i, layer in enumerate(net.layers):
            layer.scale = i
        graph = Train(net, scan)
        RUNS.clear()
        return graph(flow.tensor(np.ones((4, 8), np.float32))).item(), len(RUNS)

    apart, once = net(False), net(True)
    assert once == pytest.approx(apart) and once[1] == 4


class Masked(Layer):
    def forward(self, x, mask=None):
        return super().forward(x) * (OUTSIDE if mask is None else mask)


def test_a_constant_from_outside_is_read():
    compare(train(Masked, True), train(Masked, False), 1e-5)


def test_global_layers_with_a_global_constant_from_outside():
    place = flow.placement("cpu", [0, 1, 2, 3])
    outside = OUTSIDE.to_global(place, flow.sbp.broadcast)

    class Scaled(Layer):
        def forward(self, x):
            return super().forward(x) * outside

    def losses(scan):
        flow.manual_seed(0)
        net = Net(Scaled).to_global(place, flow.sbp.broadcast)
        graph = Train(net, scan)
        x = flow.tensor(np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32))
        return [graph(x.to_global(place, flow.sbp.split(0))).numpy().item() for _ in range(3)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)


def test_a_backward_through_blocks_can_be_differentiated():
    apart, once = train(Layer, False, create_graph=True), train(Layer, True, create_graph=True)
    assert once[2] < apart[2]
    compare(once, apart, 1e-4)


def test_tied_layers_get_the_sum_of_their_gradients():
    def losses(scan):
        flow.manual_seed(0)
        net = Net(Layer)
        net.layers[2].linear.weight = net.layers[0].linear.weight
        graph = Train(net, scan)
        x = flow.tensor(np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32))
        return [graph(x).item() for _ in range(4)]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)


def test_an_error_in_a_layer_is_the_users_own():
    class Broken(Layer):
        def forward(self, x):
            raise ZeroDivisionError("in the layer")

    with pytest.raises(ZeroDivisionError, match="in the layer"):
        train(Broken, True)


@pytest.mark.parametrize("devices", [1, 4])
def test_state_of_rolled_layers_is_written_in_place(devices):
    """Beside the old state a step holds the gradients and a few slices, no second stack of weights or moments."""
    width, count = 128, 6
    net = nn.Sequential(nn.Linear(4, width, bias=False), Net(Layer, count, width=width))
    x = flow.ones(8, 4)
    if devices > 1:
        where = flow.placement("cpu", range(devices))
        net, x = net.to_global(where, flow.sbp.broadcast), x.to_global(where, flow.sbp.split(0))

    class Step(graphs.Train):
        loss = staticmethod(lambda model, x: (model(x) ** 2).mean())

    graph = Step(net, flow.optim.AdamW(net.parameters(), lr=0.01))
    graph.config.enable_block_scan(True)
    graph.build_graph(x)
    found = graph.program.compile().memory_analysis()
    stack = 4 * count * width * width
    assert found.alias_size_in_bytes > 3 * stack
    assert stack < found.temp_size_in_bytes < 2.5 * stack  # with new stacks beside the old ones more than 4


@pytest.mark.parametrize("devices", [1, 4])
def test_optimizer_state_of_rolled_layers_is_filled_as_stacks(devices, monkeypatch):
    """The first call must not fill, or stack, the moments layer by layer."""
    filled = []
    fill = LazyConstant.materialize
    monkeypatch.setattr(LazyConstant, "materialize", lambda self: filled.append(self) or fill(self))

    def run(scan):
        flow.manual_seed(0)
        # The layer before lets the first equal one have a gradient of its input, as the others have.
        net, x = nn.Sequential(nn.Linear(4, 8, bias=False), Net(Layer, 8)), flow.ones(16, 4)
        if devices > 1:
            where = flow.placement("cpu", range(devices))
            net, x = net.to_global(where, flow.sbp.broadcast), x.to_global(where, flow.sbp.split(0))
        optimizer = flow.optim.AdamW(net.parameters(), lr=0.01)

        class Step(graphs.Train):
            loss = staticmethod(lambda model, x: (model(x) ** 2).mean())

        graph = Step(net, optimizer)
        graph.config.enable_block_scan(scan)
        losses = [graph(x).item() for _ in range(2)]
        return losses, [t.numpy() for t in optimizer.state_tensors()], [p.numpy() for p in net.parameters()]

    rolled = run(True)
    assert len(filled) == 2  # of the layer before
    for found, want in zip(rolled, run(False), strict=True):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert len(filled) == 2 + 2 * len(rolled[2])


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", flow.zeros(16, 8))


class Box:
    """Holds a cache where a block cannot see it."""

    def __init__(self, cache):
        self.cache = cache

    def __call__(self):
        return self.cache


class Summing(Layer):
    def forward(self, x, cache):
        cache = cache() if isinstance(cache, Box) else cache
        cache.sum.copy_(cache.sum + x)
        return super().forward(cache.sum)


class Summed(nn.Graph):
    def __init__(self, scan, is_hidden):
        super().__init__()
        self.layers = nn.ModuleList(Summing() for _ in range(4))
        self.caches = nn.ModuleList(Cache() for _ in range(4))
        self.is_hidden = is_hidden
        self.config.enable_block_scan(scan)

    @flow.no_grad()
    def build(self, x):
        for layer, cache in zip(self.layers, self.caches):
            x = layer(x, Box(cache) if self.is_hidden else cache)
        return x


@pytest.mark.parametrize("is_hidden", [False, True])
def test_layers_that_write_a_module_they_are_given(is_hidden):
    """Caches come as arguments, of which a block takes the tensors; or it is told that there is one it cannot take."""

    def run(scan):
        flow.manual_seed(0)
        graph = Summed(scan, is_hidden)
        RUNS.clear()
        x = flow.tensor(np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32))
        outs = [graph(x).numpy() for _ in range(3)]
        return outs, [cache.sum.numpy() for cache in graph.caches], len(RUNS)

    apart, once = run(False), run(True)
    for found, want in zip(once[0] + once[1], apart[0] + apart[1], strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    assert apart[2] == 4 and (once[2] == 1 if not is_hidden else once[2] > 4)


# -- what XLA is held to


def test_an_accelerator_computes_again_what_was_not_saved():
    def both(x, w):
        h = jnp.tanh(x @ w)  # saved is x @ w, half the bytes of the float32 that backward wants
        wide = jnp.tanh(h.astype(jnp.float32))
        ct = cotangent_p.bind(shape=(8, 8), dtype=jnp.float32)
        return wide, ct * (1 - wide * wide)

    x = jax.ShapeDtypeStruct((8, 8), jnp.bfloat16)
    closed = jax.make_jaxpr(both)(x, x)
    barriers = []
    for again in (False, True):
        backward = split("layer", closed, 1, None, again).backward
        program = jax.make_jaxpr(backward)(x, x, x, jax.ShapeDtypeStruct((8, 8), jnp.float32))
        barriers.append(str(program).count("optimization_barrier"))
    assert barriers == [0, 1]
