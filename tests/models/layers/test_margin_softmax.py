"""Softmax with a margin over classes that are split: PyTorch's numbers, one device's gradient, what ranks exchange."""

import math

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax.models.layers import MarginSoftmax, PartialMarginSoftmax

B, S = flow.sbp.broadcast, flow.sbp.split
LINE, GRID = flow.placement("cpu", list(range(8))), flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
BATCH, WIDTH, INPUT = 16, 8, 12
MARGINS = {"arcface": {"m2": 0.5}, "cosface": {"m3": 0.4}, "combined": {"m1": 1.1, "m2": 0.3, "m3": 0.2}}
SAME = 2e-5


class Train(nn.Graph):
    def __init__(self, backbone, head, is_sparse):
        super().__init__()
        self.backbone, self.head = backbone, head
        both = [*backbone.parameters(), *head.parameters()]
        self.add_optimizer(optim.SGD(both, lr=0.2, momentum=0.9), is_sparse=is_sparse)

    def build(self, x, labels):
        loss = self.head(self.backbone(x), labels)
        loss.backward()
        return loss


def trained(head, placement=None, sbp=None, steps=3, batch=BATCH):
    """Return losses, the head's weight and the graph, after steps on random vectors."""
    flow.manual_seed(3)
    rng = np.random.default_rng(0)
    backbone = nn.Linear(INPUT, head.weight.shape[-1])
    with flow.no_grad():
        for p in (*backbone.parameters(), *head.parameters()):
            p.copy_(flow.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
    if placement is not None:
        backbone.to_global(placement, [B] * len(sbp))
        head.to_global(placement, sbp)
    graph = Train(backbone, head, isinstance(head, PartialMarginSoftmax))
    losses = []
    classes = math.prod(head.weight.shape[:-1])
    for _ in range(steps):
        x, labels = rng.standard_normal((batch, INPUT)).astype(np.float32), rng.integers(0, classes, batch)
        tensors = [flow.tensor(x), flow.tensor(labels)]
        if placement is not None:
            tensors = [t.to_global(placement, [S(0)] * len(sbp)) for t in tensors]
        losses.append(graph(*tensors).item())
    return np.array(losses), head.weight.detach().numpy(), graph


@pytest.mark.parametrize("margin", MARGINS)
def test_loss_and_gradients_are_those_of_the_formula_in_pytorch(margin):
    options = {"m1": 1.0, "m2": 0.0, "m3": 0.0, **MARGINS[margin]}
    head = MarginSoftmax(20, WIDTH, **options)
    features = flow.randn(5, WIDTH).requires_grad_()
    labels = flow.tensor([3, 0, 19, 3, 7])
    loss = head(features, labels)
    loss.backward()
    x, w = (torch.tensor(t.detach().numpy(), requires_grad=True) for t in (features, head.weight))
    y = torch.tensor(labels.numpy())
    cosines = torch.nn.functional.normalize(x) @ torch.nn.functional.normalize(w).T
    right = torch.cos(options["m1"] * torch.acos(cosines[torch.arange(5), y]) + options["m2"]) - options["m3"]
    hot = torch.nn.functional.one_hot(y, 20).bool()
    expected = torch.nn.functional.cross_entropy(64 * torch.where(hot, right[:, None], cosines), y)
    expected.backward()
    np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-5)
    np.testing.assert_allclose(features.grad.numpy(), x.grad.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(head.weight.grad.numpy(), w.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_a_feature_that_is_its_class_has_a_finite_gradient():
    head = MarginSoftmax(4, WIDTH, m2=0.5)
    features = head.weight.detach()[1:2].clone().requires_grad_()
    head(features, flow.tensor([1])).backward()
    assert features.grad.isfinite().all().item() and head.weight.grad.isfinite().all().item()


HEADS = {
    "all": lambda: MarginSoftmax(1003, WIDTH, m2=0.5),  # uneven over 8 ranks
    "partial": lambda: PartialMarginSoftmax(1024, WIDTH, sample=128, blocks=8, m2=0.5),
}


@pytest.fixture(scope="module")
def alone():
    return {kind: trained(make()) for kind, make in HEADS.items()}


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("where", ["classes", "features", "both"])
def test_every_layout_gives_the_numbers_of_one_device(kind, where, alone):
    last = 1 if kind == "all" else 2
    place, sbp = {
        "classes": (LINE, [S(0)]),
        "features": (LINE, [S(last)]),
        "both": (GRID, [S(last), S(0)]),
    }[where]
    losses, weight, graph = trained(HEADS[kind](), place, sbp)
    np.testing.assert_allclose(losses, alone[kind][0], rtol=SAME)
    np.testing.assert_allclose(weight, alone[kind][1], rtol=SAME, atol=SAME)
    traffic = graph.traffic()
    assert traffic.planned == traffic.compiled


@pytest.mark.parametrize("make", [
    lambda n: MarginSoftmax(n, WIDTH, m2=0.5),
    lambda n: PartialMarginSoftmax(n, WIDTH, sample=256, blocks=8, m2=0.5),
], ids=["all", "partial"])  # fmt: skip
def test_what_ranks_exchange_does_not_grow_with_the_classes(make):
    exchanged = []
    for classes in (8_000, 64_000):
        _, _, graph = trained(make(classes), LINE, [S(0)], steps=1)
        exchanged.append(sum(graph.traffic().compiled.values()))
    assert exchanged[0] == exchanged[1] < 100 * BATCH * WIDTH * 4


@pytest.mark.exhaustive
def test_a_million_classes_on_eight_devices():
    """The gradient equals one device's at 10,000 classes; at a million each device holds an eighth."""
    losses, weight, _ = trained(MarginSoftmax(10_000, 64, m2=0.5), steps=2, batch=64)
    split, halves, _ = trained(MarginSoftmax(10_000, 64, m2=0.5), LINE, [S(0)], steps=2, batch=64)
    np.testing.assert_allclose(split, losses, rtol=SAME)
    np.testing.assert_allclose(halves, weight, rtol=1e-4, atol=1e-5)
    _, _, small = trained(MarginSoftmax(10_000, 64, m2=0.5), LINE, [S(0)], steps=1, batch=64)
    _, _, large = trained(MarginSoftmax(1_000_000, 64, m2=0.5), LINE, [S(0)], steps=1, batch=64)
    # The planner weighs bytes against work, which grows, so that plans differ a little.
    exchanged = [sum(graph.traffic().compiled.values()) for graph in (small, large)]
    assert exchanged[1] < 1.05 * exchanged[0]
    held = large._g.latest[1].compile().memory_analysis()
    weight_and_state = 2 * 1_000_000 * 64 * 4 / 8
    assert held.argument_size_in_bytes < 1.01 * weight_and_state


def test_a_draw_has_the_labels_and_changes_from_step_to_step():
    head = PartialMarginSoftmax(400, WIDTH, sample=80, blocks=4)
    labels = flow.tensor([5, 5, 399, 100, 101, 250])
    draws = [head.draw_rows(labels).numpy() for _ in range(2)]
    for rows in draws:
        assert rows.shape == (4, 20) and all(len(set(row)) == 20 for row in rows.tolist())
        assert {5} <= set(rows[0]) and {0, 1} <= set(rows[1]) and {50} <= set(rows[2]) and {99} <= set(rows[3])
    assert (draws[0] != draws[1]).any()


def test_a_draw_of_all_classes_is_the_whole_softmax():
    flow.manual_seed(0)
    part, whole = PartialMarginSoftmax(40, WIDTH, sample=40, blocks=4, m2=0.5), MarginSoftmax(40, WIDTH, m2=0.5)
    with flow.no_grad():
        whole.weight.copy_(part.weight.reshape(40, WIDTH))
    features, labels = flow.randn(6, WIDTH), flow.tensor([0, 9, 10, 39, 20, -100])
    np.testing.assert_allclose(part(features, labels).item(), whole(features, labels).item(), rtol=1e-5)


def test_classes_that_are_not_drawn_stay():
    head = PartialMarginSoftmax(400, WIDTH, sample=40, blocks=4, m2=0.5, scale=1.0)
    optimizer = optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
    optimizer.use_sparse_updates()
    before = head.weight.detach().numpy().copy()
    head(flow.randn(6, WIDTH), flow.tensor([0, 9, 10, 39, 20, 399])).backward()
    optimizer.step()
    changed = (head.weight.detach().numpy() != before).any(2).sum(1)
    assert changed.tolist() == [10, 10, 10, 10]


def test_wrong_margins_and_samples_are_refused():
    with pytest.raises(ValueError, match=r"(?s)m1=0.5.*rule: a margin makes the label's cosine smaller.*fix:  m2=0.5"):
        MarginSoftmax(10, 4, m1=0.5)
    with pytest.raises(ValueError, match=r"(?s)blocks=8.*blocks divide the classes.*fix:  classes=1008, sample=248"):
        PartialMarginSoftmax(1001, 4, sample=250, blocks=8)
    with pytest.raises(ValueError, match="a sample has at most all classes"):
        PartialMarginSoftmax(16, 4, sample=32, blocks=8)
