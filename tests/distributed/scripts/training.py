"""Run by test_together.py on several processes: training over all ranks gives the numbers of rank 0 alone."""

import numpy as np

import sbpjax as flow

F = flow.nn.functional
rank, ranks = flow.env.get_rank(), flow.env.get_world_size()
everywhere, alone = flow.placement.all("cpu"), flow.placement("cpu", [0])
split, broadcast = flow.sbp.split, flow.sbp.broadcast
TOLERANCE = 1e-5


class Step(flow.nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        return loss


def train(where):
    """Return the losses of eager steps and of a graph's, and the weights after them."""
    flow.manual_seed(3)
    model = flow.nn.Sequential(flow.nn.Linear(6, 8), flow.nn.Dropout(0.2), flow.nn.Linear(8, 3))
    model.to_global(where, broadcast)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = Step(model, optimizer)
    losses = []
    for i in range(4):
        flow.manual_seed(100 + i)
        x = flow.randn(8, 6, placement=where, sbp=split(0))
        y = x[:, :3] * 2 + 1
        if i < 2:
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            loss = step(x, y)
        losses.append(loss.item())
    return losses, model[2].weight.numpy()


def test_training():
    (losses, weights), (wanted, wanted_weights) = train(everywhere), train(alone)
    np.testing.assert_allclose(losses, wanted, rtol=TOLERANCE)
    np.testing.assert_allclose(weights, wanted_weights, rtol=TOLERANCE, atol=TOLERANCE)
    gathered = [None] * ranks
    flow.distributed.all_gather_object(gathered, (losses, weights.tobytes()))
    assert all(t == gathered[0] for t in gathered)


def test_random_numbers_of_the_first_rank_hold():
    flow.manual_seed(9)
    wanted = flow.rand(5, placement=alone, sbp=broadcast).tolist()
    flow.manual_seed(9)
    if rank != 0:
        flow.rand(3)  # a number that only some ranks draw must not lead them apart
    assert flow.rand(5, placement=everywhere, sbp=split(0)).tolist() == wanted
    flow.manual_seed(9)


def test_between_placements():
    n = len(everywhere.ranks)
    first, last = flow.placement("cpu", list(range(n // 2))), flow.placement("cpu", list(range(n // 2, n)))
    a = flow.arange(9, placement=first, sbp=split(0))
    b = (a * 2).to_global(last, split(0))
    assert b.numpy().tolist() == list(range(0, 18, 2)) and (b + 1).sum().item() == 81
    assert str(b) == str(a * 2).replace(repr(first), repr(last))


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
print(f"rank {rank} of {ranks} passed")
