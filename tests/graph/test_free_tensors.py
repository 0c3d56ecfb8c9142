"""Tensors that `build` writes and that are in no module of the graph: running statistics, counters, sums."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn

F = nn.functional
PLACE = flow.placement("cpu", [0, 1, 2, 3])
X = np.random.default_rng(0).standard_normal((6, 8, 3)).astype(np.float32)


class Run(nn.Graph):
    """Runs a function; its attributes are kept for it to use."""

    def __init__(self, fn, **attributes):
        super().__init__()
        self.fn = fn
        for name, value in attributes.items():
            setattr(self, name, value)

    def build(self, *args):
        return self.fn(self, *args)


def statistics(place=None):
    pair = flow.zeros(3), flow.ones(3)
    return pair if place is None else tuple(t.to_global(place, flow.sbp.broadcast) for t in pair)


def batches(place=None):
    found = [flow.tensor(x) for x in X]
    return found if place is None else [x.to_global(place, flow.sbp.split(0)) for x in found]


@pytest.mark.parametrize("norm", ["batch", "instance"])
@pytest.mark.parametrize("place", [None, PLACE], ids=["local", "global"])
def test_free_running_statistics_follow_every_step(norm, place):
    def normalised(mean, var, x):
        if norm == "batch":
            return F.batch_norm(x, mean, var, training=True)
        return F.instance_norm(x.unsqueeze(0).transpose(1, 2), mean, var, use_input_stats=True)

    own, eager = statistics(place), statistics(place)
    graph = Run(lambda g, x: normalised(*own, x))
    for x in batches(place):
        y, wanted = graph(x), normalised(*eager, x)
        for a, b in zip((y, *own), (wanted, *eager)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
            assert a.is_global == b.is_global
    assert len(graph._g.programs) == 1


@pytest.mark.parametrize("steps", [1, 4])
def test_statistics_in_a_training_step(steps):
    def trained(compiled):
        flow.manual_seed(0)
        model, (mean, var) = nn.Linear(3, 3), statistics()
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

        def loss_of(x):
            return F.batch_norm(model(x), mean, var, training=True).pow(3).mean()

        class Train(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model = model
                self.add_optimizer(optimizer)
                self.config.set_gradient_accumulation_steps(steps)

            def build(self, x):
                loss = loss_of(x)
                loss.backward()
                return loss

        graph = Train()
        for x in batches()[:3]:
            if compiled:
                graph(x)
                continue
            for part in x.chunk(steps):
                (loss_of(part) / steps).backward()
            optimizer.step()
            optimizer.zero_grad()
        return [t.detach().numpy() for t in (*model.parameters(), mean, var)]

    for a, b in zip(trained(True), trained(False)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_sums_and_counters_wherever_they_are_kept():
    class Meter:
        def __init__(self):
            self.total = flow.zeros(3)

    meter, table, free = Meter(), {"n": flow.zeros((), dtype=flow.int64)}, [flow.zeros(2, 3)]

    def step(graph, x):
        meter.total += x.sum(0)
        table["n"] += 1
        free[0][1] = x.mean(0)
        graph.pairs[0].copy_(meter.total)
        return meter.total * 1

    graph = Run(step, pairs=[flow.zeros(3)])
    for i, x in enumerate(batches()):
        total = graph(x)
        np.testing.assert_allclose(total.numpy(), X[: i + 1].sum((0, 1)), rtol=1e-4, atol=1e-5)
        assert table["n"].item() == i + 1
        np.testing.assert_allclose(free[0].numpy(), [[0, 0, 0], X[i].mean(0)], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(graph.pairs[0].numpy(), meter.total.numpy())
    meter.total.zero_()  # a write between two steps is seen by the next
    np.testing.assert_allclose(graph(batches()[0]).numpy(), X[0].sum(0), rtol=1e-5)
    assert len(graph._g.programs) == 1


def test_buffers_of_a_module_that_is_not_the_graphs():
    norm, eager = nn.BatchNorm1d(3, affine=False), nn.BatchNorm1d(3, affine=False)
    graph = Run(lambda g, x: norm(x))
    for x in batches():
        np.testing.assert_allclose(graph(x).numpy(), eager(x).numpy(), rtol=1e-5, atol=1e-6)
    for a, b in zip(norm.buffers(), eager.buffers()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_weights_that_the_graph_was_not_given_are_refused():
    weight = flow.ones(3, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"(?s)the grad of a tensor float32\[3\].*fix: .*self\.model = model"
    ) as error:
        Run(lambda g, x: (x * weight).sum().backward())(batches()[0])
    assert "sbpjax.compile" not in str(error.value) and weight.grad is None
    optimizer = flow.optim.SGD([weight], lr=0.1)
    with pytest.raises(RuntimeError, match=r"(?s)SGD\.step.*self\.add_optimizer\(optimizer\)"):
        Run(lambda g, x: optimizer.step())(batches()[0])


def test_a_compiled_function_names_them():
    mean, var = statistics()

    def normalised(x):
        return F.batch_norm(x, mean, var, training=True)

    with pytest.raises(RuntimeError, match=r"(?s)writes a tensor float32\[3\].*state=\(model, optimizer, tensor\)"):
        flow.compile(normalised)(batches()[0])
    step, eager = flow.compile(normalised, state=(mean, var)), statistics()
    for x in batches():
        step(x)
        F.batch_norm(x, *eager, training=True)
    np.testing.assert_allclose(mean.numpy(), eager[0].numpy(), rtol=1e-5)
