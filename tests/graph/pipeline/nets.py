"""Small nets for pipelines, their training, and what has to be the same; no devices are named here."""

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F

WIDTH, CLASSES, ROWS = 16, 8, 32
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)


class Block(nn.Module):
    """A residual block; with dropout and batch norm it has random numbers and state of its own."""

    def __init__(self, dropout=0.0, norm=False):
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH) if norm else nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(x)))))


class Net(nn.Module):
    """Blocks in a row between an embedding of classes and a head, which may be the embedding again."""

    def __init__(self, blocks, tied=False, **options):
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, WIDTH)
        self.blocks = nn.ModuleList([Block(**options) for _ in range(blocks)])
        self.head = None if tied else nn.Linear(WIDTH, CLASSES, bias=False)


class Train(nn.Graph):
    """`places` has a placement per block; None trains on one."""

    def __init__(self, net, places, optimizer, micro_batches, sbp=B, scheduler=None):
        super().__init__()
        self.net, self.places, self.sbp = net, places, sbp
        self.add_optimizer(optimizer, lr_sch=scheduler)
        self.config.set_gradient_accumulation_steps(micro_batches)

    def build(self, x, y):
        net = self.net
        x = net.embedding(x)
        for block, place in zip(net.blocks, self.places, strict=True):
            if place is not None:
                x = x.to_global(placement=place, sbp=self.sbp)
            x = block(x)
        weight = net.embedding.weight if net.head is None else net.head.weight
        if self.places[-1] is not None:
            weight = weight.to_global(placement=self.places[-1], sbp=None) if net.head is None else weight
        loss = F.cross_entropy(F.linear(x, weight), y)
        loss.backward()
        return loss


def lay(net, places, sbp):
    """Put every part of a net where it belongs, broadcast; return where inputs and labels go."""
    first, last = places[0], places[-1]
    everywhere = [B] * len(first.hierarchy)
    net.embedding.to_global(first, everywhere)
    for block, place in zip(net.blocks, places, strict=True):
        block.to_global(place, everywhere)
    if net.head is not None:
        net.head.to_global(last, everywhere)
    return first, last


def train(places, micro_batches, *, steps=4, sbp=B, configure=None, optimizer=None, pipelined=True, rows=ROWS, **net):
    flow.manual_seed(0)
    model = Net(len(places), **net)
    one = [places[0]] * len(places)
    first, last = lay(model, places if pipelined else one, sbp)
    made = (optimizer or (lambda p: flow.optim.AdamW(p, lr=1e-2)))(model.parameters())
    graph = Train(model, places if pipelined else [None] * len(places), made, micro_batches, sbp)
    if configure is not None:
        configure(graph)
    losses = []
    for step in range(steps):
        rng = np.random.default_rng(step)
        x = flow.tensor(rng.integers(0, CLASSES, rows), placement=first, sbp=sbp)
        y = flow.tensor(rng.integers(0, CLASSES, rows), placement=last, sbp=sbp)
        losses.append(graph(x, y).numpy().reshape(-1))
    return (
        np.concatenate([np.zeros(0, np.float32), *losses]),
        {n: t.numpy() for n, t in model.state_dict().items()},
        graph,
    )


def same(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(found[0], expected[0], rtol=tolerance)
    assert found[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        np.testing.assert_allclose(
            found[1][name], value, rtol=0, atol=tolerance * max(1.0, np.abs(value).max()), err_msg=name
        )
