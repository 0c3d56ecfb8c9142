"""Synchronised batch norms of local tensors: ranks of unequal batches train as one process on all rows."""

import numpy as np

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn.parallel import DistributedDataParallel as ddp

TOLERANCE = 1e-5
INSIDE = {1: (), 2: (3, 2), 3: (2, 1, 3)}
CONVOLUTION = {1: lambda: nn.Linear(3, 4), 2: lambda: nn.Conv2d(3, 4, 1), 3: lambda: nn.Conv3d(3, 4, 1)}
NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


class Net(nn.Module):
    """A norm on the input, one in a block, one in a block of a block: of `dims` inner dims."""

    def __init__(self, dims, **options):
        super().__init__()
        norm = NORM[dims]
        self.first = norm(3, **options)
        self.block = nn.Sequential(CONVOLUTION[dims](), nn.ModuleDict({"inner": norm(4, **options)}), nn.Tanh())
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        x = self.block[0](self.first(x))
        x = self.block[2](self.block[1]["inner"](x))
        return self.head(x.flatten(2).sum(2) if x.ndim > 2 else x)


def data(count, dims):
    """Return `count` rows, with means that differ from row to row, so that ranks differ."""
    rng = np.random.default_rng(dims)
    x = rng.normal(size=(count, 3, *INSIDE[dims])).astype("f4")
    return x * 2 + np.arange(count, dtype="f4").reshape(-1, *[1] * (x.ndim - 1)), rng.normal(size=(count, 2)).astype(
        "f4"
    )


def train(model, module, x, y, total, ranks, steps=3):
    """Take steps of the mean squared error of all rows; return outputs of steps and in evaluation, and the state."""
    optimizer, outs = flow.optim.SGD(model.parameters(), lr=0.1), []
    for _ in range(steps):
        out = model(flow.tensor(x))
        optimizer.zero_grad()
        # DDP averages over the ranks: the sum of the ranks' shares of the whole batch's mean, times their number
        (((out - flow.tensor(y)) ** 2).sum() * (ranks / (2 * total))).backward()
        optimizer.step()
        outs.append(out.detach().numpy())
    module.eval()
    outs.append(module(flow.tensor(x)).detach().numpy())
    return outs, {name: value.numpy() for name, value in module.state_dict().items()}


def check(rows, dims, **options):
    """Hold the rank's training, of `rows[rank]` rows, against one process on all rows."""
    rank, ranks, total = flow.env.get_rank(), len(rows), sum(rows)
    x, y = data(total, dims)
    mine = slice(sum(rows[:rank]), sum(rows[: rank + 1]))
    flow.manual_seed(0)
    whole = Net(dims, **options)
    wanted, state = train(whole, whole, x, y, total, 1)
    flow.manual_seed(rank)  # the parameters of rank 0 hold
    if rank == 0:
        flow.manual_seed(0)
    module = nn.SyncBatchNorm.convert_sync_batchnorm(Net(dims, **options))
    outs, got = train(ddp(module), module, x[mine], y[mine], total, ranks)
    for step, (out, want) in enumerate(zip(outs, wanted, strict=True)):
        if step == len(outs) - 1 and not options.get("track_running_stats", True):
            continue  # without running statistics each rank evaluates by its own rows, as in PyTorch
        np.testing.assert_allclose(out, want[mine], rtol=TOLERANCE, atol=TOLERANCE)
    for name, value in state.items():
        np.testing.assert_allclose(got[name], value, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


if __name__ == "__main__":
    ranks = flow.env.get_world_size()
    rows = [3, 6] if ranks == 2 else [5, 0, 2, 4]
    for dims in (1, 2, 3):
        check(rows, dims)
    check(rows, 2, momentum=None)
    print(f"rank {flow.env.get_rank()} of {ranks} passed")
