# ranks: 4
import oneflow as flow
from shown import show

rank = flow.env.get_rank()
x = flow.ones(2, 2) * (rank + 1)
flow.comm.all_reduce(x)
show("sum", x)
loss = flow.tensor(float(rank))
flow.comm.all_reduce(loss)
show("mean", loss / flow.env.get_world_size())
i = flow.tensor([rank, 1], dtype=flow.int64)
flow.comm.all_reduce(i)
show("ints", i)
