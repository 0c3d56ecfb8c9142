"""Losses without logits: what is rewritten, what is not, values on any layout, and what `explain` says."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim, sbp
from sbpjax._core.ops.losses import class_loss as losses
from sbpjax._core.ops.losses import linear_cross_entropy as in_chunks
from sbpjax.nn import functional as F

ONE = flow.placement("cpu", [0])
FOUR = flow.placement("cpu", [0, 1, 2, 3])
GRID = flow.placement("cpu", [[0, 1], [2, 3]])
B, S0, S1 = sbp.broadcast, sbp.split(0), sbp.split(1)
TOKENS, WIDTH, CLASSES = (6, 8), 12, 22
LINES = "linear and cross_entropy are one op"


@pytest.fixture(autouse=True)
def large(monkeypatch):
    # No other test has these shapes, so no op is traced with another limit before.
    monkeypatch.setattr(losses, "LARGE", 500)
    monkeypatch.setattr(in_chunks, "_LOGITS", CLASSES * 64)


class Head(nn.Module):
    """A layer, then the output layer; its loss in the form of a test."""

    def __init__(self, form="linear", bias=True):
        super().__init__()
        self.form = form
        self.first = nn.Linear(WIDTH, WIDTH)
        self.last = nn.Linear(WIDTH, CLASSES, bias=bias)

    def forward(self, x, y):
        logits = self.last(F.gelu(self.first(x)))
        if self.form == "transposed":  # as logits of positions that are split
            return F.cross_entropy(logits.transpose(1, -1), y, label_smoothing=0.1)
        logits = logits.reshape(-1, CLASSES)
        loss = F.cross_entropy(logits, y.reshape(-1), label_smoothing=0.1)
        if self.form == "read twice":
            loss = loss + 1e-3 * logits.square().mean()
        if self.form == "squared":
            loss = loss * loss
        return loss


class Step(nn.Graph):
    def __init__(self, model, train=True, amp=False, micro=1):
        super().__init__()
        self.model, self.train_ = model, train
        if amp:
            self.config.enable_amp(True, dtype=flow.bfloat16)
        if micro > 1:
            self.config.set_gradient_accumulation_steps(micro)
        if train:
            self.add_optimizer(optim.SGD(model.parameters(), lr=0.3))

    def build(self, x, y):
        loss = self.model(x, y)
        if self.train_:
            loss.backward()
        return loss


def arrays():
    rng = np.random.default_rng(3)
    target = rng.integers(0, CLASSES, TOKENS)
    target[0, :3] = -100
    return rng.standard_normal((*TOKENS, WIDTH)).astype("float32"), target


def trained(placement, x_sbp, weight_sbp, form="linear", steps=3, **how):
    """Return the losses of some steps, the state behind them, and the graph."""
    flow.manual_seed(0)
    model = Head(form)
    model.to_global(placement, [B] * len(x_sbp))
    model.last.to_global(placement, weight_sbp)
    x, y = (flow.tensor(a).to_global(placement, x_sbp) for a in arrays())
    graph = Step(model, **how)
    found = [graph(x, y).numpy() for _ in range(steps)]
    return [np.asarray(v).ravel() for v in (np.stack(found), *(p.numpy() for p in model.parameters()))], graph


def names(graph):
    return [e.primitive.name for e in graph._g.latest[1].plan.program.eqns]


def logits_of(graph):
    """Return the values of a program that are as large as all logits."""
    eqns = graph._g.latest[1].plan.program.eqns
    size = TOKENS[0] * TOKENS[1] * CLASSES
    return [v for e in eqns for v in e.outvars if int(np.prod(v.aval.shape)) == size]


def compare(found, expected, tolerance=2e-5):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def by_torch(form="linear", steps=3, micro=1):
    """Return what `trained` does, as PyTorch computes it."""
    import torch

    flow.manual_seed(0)
    weights = [torch.tensor(p.numpy(), requires_grad=True) for p in Head().parameters()]
    found = []
    for _ in range(steps):
        for x, y in zip(*(np.split(a, micro) for a in arrays()), strict=True):
            w1, b1, w2, b2 = weights
            logits = torch.nn.functional.gelu(torch.tensor(x) @ w1.T + b1).reshape(-1, WIDTH) @ w2.T + b2
            loss = torch.nn.functional.cross_entropy(logits, torch.tensor(y).reshape(-1), label_smoothing=0.1)
            loss = loss + 1e-3 * logits.square().mean() if form == "read twice" else loss
            loss = loss * loss if form == "squared" else loss
            (loss / micro).backward()
            found.append(loss.item())
        with torch.no_grad():
            for w in weights:
                w -= 0.3 * w.grad
                w.grad = None
    return [np.asarray(found, "float32"), *(w.detach().numpy().ravel() for w in weights)]


@pytest.mark.parametrize(
    "place, x_sbp, weight_sbp",
    [
        (ONE, [B], [B]),
        (FOUR, [S0], [B]),
        (FOUR, [B], [S0]),
        (FOUR, [S1], [B]),
        (GRID, [S0, B], [B, S0]),
    ],
    ids=["one", "tokens", "classes", "sequence", "tokens and classes"],
)
def test_a_step_on_every_layout(place, x_sbp, weight_sbp):
    found, graph = trained(place, x_sbp, weight_sbp)
    compare(found, by_torch())
    assert names(graph).count("linear_cross_entropy_grad") == 1  # losses and gradients at once
    assert "linear_cross_entropy" not in names(graph) and not logits_of(graph)
    line = next(line for line in str(graph.explain(check=False, level=2)).splitlines() if line.startswith(LINES))
    assert f"f32[48, {CLASSES}] are never whole" in line and "test_fused_losses.py" in line


def test_logits_whose_transpose_the_losses_read():
    found, graph = trained(FOUR, [S1], [B], "transposed")
    compare(found, by_torch())
    assert names(graph).count("linear_cross_entropy_grad") == 1 and not logits_of(graph)


def test_a_gradient_that_depends_on_the_losses_comes_after_them():
    found, graph = trained(FOUR, [S0], [B], "squared")
    compare(found, by_torch("squared"))
    kept = [n for n in names(graph) if n.startswith("linear_cross")]
    assert kept == ["linear_cross_entropy", "linear_cross_entropy_grad"] and not logits_of(graph)


@pytest.mark.parametrize("smoothing, first", [(0.1, True), (0.0, True), (0.1, False), (0.0, False)])
def test_a_gradient_of_other_losses_than_those_returned(smoothing, first):
    # The losses whose gradient is taken are dead: those returned may have another smoothing, and may come later.
    def both(linear, x, y):
        logits = linear(x)
        shown = F.cross_entropy(logits, y, label_smoothing=smoothing) if first else None
        (dx,) = flow.autograd.grad(F.cross_entropy(logits, y, label_smoothing=0.1), [x], retain_graph=True)
        twice = dx * 2
        return twice, shown if first else F.cross_entropy(logits, y, label_smoothing=smoothing)

    class Both(nn.Graph):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(WIDTH, CLASSES)

        def build(self, x, y):
            return both(self.linear, x, y)

    graph = Both()
    data, target = (a.reshape(48, *a.shape[2:]) for a in arrays())
    x, y = flow.tensor(data, requires_grad=True), flow.tensor(target)
    found = graph(x, y)
    compare([t.numpy() for t in found], [t.numpy() for t in both(graph.linear, x, y)])


def test_logits_that_others_read_stay():
    found, graph = trained(FOUR, [S0], [B], "read twice")
    compare(found, by_torch("read twice"))
    assert not [n for n in names(graph) if n.startswith("linear_cross")] and logits_of(graph)
    assert LINES not in str(graph.explain(check=False, level=2))


def test_evaluation_has_no_logits_either():
    found, graph = trained(FOUR, [S0], [B], train=False, steps=1)
    np.testing.assert_allclose(found[0][0], by_torch()[0][0], rtol=1e-5)
    assert names(graph).count("linear_cross_entropy") == 1 and not logits_of(graph)


def test_few_logits_stay():
    model = Head().to_global(FOUR, [B])
    graph = Step(model)
    graph(*(flow.tensor(a[:, :2]).to_global(FOUR, [B]) for a in arrays()))
    assert not [n for n in names(graph) if "cross_entropy" in n]


def test_autocast():
    found, graph = trained(FOUR, [S0], [B], amp=True)
    compare(found, by_torch(), 2e-2)
    (eqn,) = (e for e in graph._g.latest[1].plan.program.eqns if e.primitive.name == "linear_cross_entropy_grad")
    assert [str(v.aval.dtype) for v in eqn.invars[:2]] == ["bfloat16"] * 2
    assert str(eqn.outvars[2].aval.dtype) == "float32"  # the gradient of a cast weight is summed in float32


def test_accumulation():
    found, graph = trained(FOUR, [S0], [B], micro=2, steps=2)
    compare(found[1:], by_torch(steps=2, micro=1)[1:])  # the mean over the whole batch's targets
    assert LINES in str(graph.explain(check=False, level=2))


def test_eager():
    import torch

    x, y = (a.reshape(48, *a.shape[2:]) for a in arrays())
    ours, theirs = flow.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y = np.minimum(y, WIDTH - 1)
    F.cross_entropy(ours, flow.tensor(y), label_smoothing=0.1).backward()
    torch.nn.functional.cross_entropy(theirs, torch.tensor(y), label_smoothing=0.1).backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)
