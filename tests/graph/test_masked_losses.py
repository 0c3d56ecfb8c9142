"""Accumulation of masked losses: loss and gradients are those of the whole batch, however its targets are spread."""

import warnings

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
RTOL, ATOL = 1e-5, 1e-6
LOW = 2e-2  # bfloat16: 8 bits
RNG = np.random.default_rng(0)
ROWS, LENGTH = 8, 6
X = RNG.normal(size=(ROWS, LENGTH, 5)).astype(np.float32)
Y = RNG.integers(0, 3, (ROWS, LENGTH))
Y[1:4] = Y[6, 2:] = Y[0, :3] = -100  # the second of four micro-batches has no target
CLASSES = flow.tensor([0.5, 2.0, 1.0])


def each(model, x, y):
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none").reshape(y.shape)
    return loss, (y != -100).float()


def ignored(model, x, y):
    return F.cross_entropy(model(x).transpose(1, 2), y)


def weighted(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), weight=CLASSES, label_smoothing=0.1)


def log_likelihood(model, x, y):
    return F.nll_loss(model(x).log_softmax(-1).flatten(0, 1), y.flatten())


def shifted(model, x, y):
    return F.cross_entropy(model(x)[:, :-1].reshape(-1, 3), y[:, 1:].reshape(-1))


def linear(model, x, y):
    return F.linear_cross_entropy(x, model.weight, y)


def masked(model, x, y):
    loss, mask = each(model, x, y)
    return (loss * mask).sum() / mask.sum()


def clamped(model, x, y):
    loss, mask = each(model, x, y)
    return (loss * mask).sum() / mask.long().sum().clamp(min=1)


def means(model, x, y):
    loss, mask = each(model, x, y)
    return (loss * mask).mean() / mask.mean()


def shares(model, x, y):
    loss, mask = each(model, x, y)
    return (loss * (mask / mask.sum())).sum()


def inverse(model, x, y):
    loss, mask = each(model, x, y)
    return (loss * mask).sum() * (1.0 / (mask.sum() + 1e-6))


def guarded(model, x, y):
    loss, mask = each(model, x, y)
    count = mask.sum()
    return flow.where(count > 0, (loss * mask).sum() / count.clamp(min=1), 0.0)


def rows_that_count(model, x, y):
    loss, mask = each(model, x, y)
    rows = (loss * mask).sum(1) / mask.sum(1).clamp(min=1)
    counted = (mask.sum(1) > 0).float()
    return (rows * counted).sum() / counted.sum()


def several_terms(model, x, y):
    out = model(x)
    tokens = F.cross_entropy(out[:, 1:].transpose(1, 2), y[:, :-1])
    return sum({"a": ignored(model, x, y), "b": 0.1 * out.square().mean(), "c": 0.3 * tokens}.values())


def several_backwards(model, x, y):
    ignored(model, x, y).backward()
    return 0.5 * masked(model, x, y)


LOSSES = [
    *[ignored, weighted, log_likelihood, shifted, linear, masked, clamped, means, shares, inverse, guarded],
    *[rows_that_count, several_terms, several_backwards],
]


def train(loss, count, place=None, make=lambda: nn.Linear(5, 3), configure=lambda graph: None, steps=1):
    """Return the parameters after some steps, and the mean of the losses of each."""
    flow.manual_seed(0)
    model = make()
    if place is not None:
        model.to_global(place, B)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.5))
            self.config.set_gradient_accumulation_steps(count)
            configure(self)

        def build(self, x, y):
            found = loss(self.model, x, y)
            found.backward()
            return found

    x, y = flow.tensor(X), flow.tensor(Y)
    if place is not None:
        x, y = x.to_global(place, S0), y.to_global(place, S0)
    graph = Train()
    losses = [graph(x, y).numpy().mean() for _ in range(steps)]
    return [p.detach().numpy() for p in model.parameters()] + losses


def same(got, want, tolerance=RTOL):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=max(ATOL, tolerance / 2))


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda f: f.__name__)
def test_losses_and_gradients_are_the_batches(loss, count):
    same(train(loss, count), train(loss, 1))


@pytest.mark.parametrize("loss", [ignored, masked, rows_that_count], ids=lambda f: f.__name__)
def test_global_tensors(loss):
    same(train(loss, 4, flow.placement("cpu", [0, 1])), train(loss, 1))


OPTIONS = {
    "zero 2": (lambda g: g.config.enable_zero(True, stage=2, shard_min_size=1), RTOL),
    "zero 3": (lambda g: g.config.enable_zero(True, stage=3, shard_min_size=1), RTOL),
    "clipped": (lambda g: g.config.set_clip_grad_norm(0.1), RTOL),
    "scaled": (lambda g: g.set_grad_scaler(flow.amp.GradScaler(init_scale=64.0)), RTOL),
    "bfloat16": (lambda g: g.config.enable_amp(True, dtype=flow.bfloat16), LOW),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    configure, tolerance = OPTIONS[name]
    place = flow.placement("cpu", [0, 1])
    found, want = (train(ignored, count, place, configure=configure, steps=2) for count in (4, 1))
    same(found, want, tolerance)


class Head(nn.Module):
    """A part of a model that returns a loss."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x, y):
        out = self.layer(x)
        return F.cross_entropy(out.transpose(1, 2), y), out


class Heads(nn.Module):
    """Equal heads are traced once, each as two calls."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([Head() for _ in range(3)])

    def forward(self, x, y):
        return sum(head(x, y)[0] for head in self.heads)


def checkpointed(graph):
    graph.model.heads[0].to(nn.graph.GraphModule).activation_checkpointing = True


@pytest.mark.parametrize("configure", [lambda graph: None, checkpointed], ids=["blocks", "checkpointed"])
def test_losses_inside_blocks(configure):
    found, want = (train(lambda m, x, y: m(x, y), n, make=Heads, configure=configure) for n in (4, 1))
    same(found, want)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_pipelines(schedule, moved):
    first, last = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])

    def run(count, pipelined):
        flow.manual_seed(0)
        a, b = nn.Linear(5, 4), nn.Linear(4, 3)

        class Train(nn.Graph):
            def __init__(self):
                super().__init__()
                self.a, self.b = a, b
                self.add_optimizer(flow.optim.SGD([*a.parameters(), *b.parameters()], lr=0.5))
                self.config.set_gradient_accumulation_steps(count)
                self.config.set_pipeline(schedule)

            def build(self, x, y):
                hidden = self.a(x).tanh()
                hidden = hidden.to_global(last, S0) if pipelined else hidden
                y = y.to_global(last, S0) if moved and pipelined else y
                loss = ignored(self.b, hidden, y)
                loss.backward()
                return loss

        x, y = flow.tensor(X), flow.tensor(Y)
        if pipelined:
            a.to_global(first, B), b.to_global(last, B)
            x, y = x.to_global(first, S0), y.to_global(first if moved else last, S0)
        loss = Train()(x, y).numpy().mean()
        return [*(p.detach().numpy() for p in (*a.parameters(), *b.parameters())), loss]

    same(run(4, True), run(1, False))


def root(model, x, y):
    return model(x).square().mean().sqrt()


def of_the_model(model, x, y):
    out = model(x)
    sure = (out.detach().max(-1)[0] > 0).float()
    return (out.square().sum(-1) * sure).sum() / sure.sum()


@pytest.mark.parametrize(("loss", "reason"), [(root, "sqrt"), (of_the_model, "depends on the model")])
def test_a_loss_that_is_no_mean_is_named_with_a_way_out(loss, reason):
    with pytest.warns(UserWarning, match=reason) as caught:
        train(loss, 4)
    (text,) = [str(w.message) for w in caught]
    assert "test_masked_losses.py" in text and "total / (count / 4)" in text


def test_the_way_out():
    def by_count(model, x, y, count):
        loss, mask = each(model, x, y)
        return (loss * mask).sum() / count

    total = flow.tensor(float((Y != -100).sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(train(lambda m, x, y: by_count(m, x, y, total / 4), 4), train(masked, 1))


def test_a_sum_is_divided_by_the_number_of_micro_batches():
    def total(model, x, y):
        return model(x).square().sum() * 1e-3

    whole, parts = (train(total, count) for count in (1, 4))
    start = train(total, 1, steps=0)
    for a, b, s in zip(parts[:2], whole[:2], start[:2], strict=True):
        np.testing.assert_allclose((a - s) * 4, b - s, rtol=1e-4, atol=1e-6)
