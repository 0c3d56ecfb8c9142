# ranks: 4
import oneflow as flow
from shown import fixed, show

rank = flow.env.get_rank()
x = flow.tensor([1.0, 2.0]) * (rank + 1)
flow.comm.broadcast(x, 0)
show("x", x)
y = fixed(2, 2, seed=rank)
flow.comm.broadcast(y, 2)
show("y", y)
