"""Run by test_together.py on two ranks: local models under DistributedDataParallel train as one on all the data."""

import numpy as np

import sbpjax as flow
from sbpjax.nn.parallel import DistributedDataParallel as ddp

rank = flow.env.get_rank()
assert (flow.env.get_world_size(), flow.env.get_local_rank(), flow.env.get_node_size()) == (2, rank, 1)
assert flow.env.is_multi_client() and not flow.env.rdma_is_initialized()
points = np.float32([[1, 2], [2, 1], [3, 5], [4, 4]])
values = points @ np.float32([[2.0], [-1.0]]) + 0.5


def fit(x, y, wrap, steps=5):
    """Return the weights after some steps of gradient descent on the mean squared error."""
    flow.manual_seed(rank if wrap is ddp else 0)  # the start of rank 0 holds
    module = flow.nn.Linear(2, 1)
    model = wrap(module)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(steps):
        loss = flow.nn.functional.mse_loss(model(flow.tensor(x)), flow.tensor(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module.weight.numpy()


mine = slice(2 * rank, 2 * rank + 2)
together = fit(points[mine], values[mine], ddp)
np.testing.assert_allclose(together, fit(points, values, lambda module: module), rtol=1e-5)
gathered = [None, None]
flow.distributed.all_gather_object(gathered, together.tobytes())
assert gathered[0] == gathered[1]
print(f"rank {rank} of 2 passed")
