# ranks: 4
import oneflow as flow
from shown import show

rank, size = flow.env.get_rank(), flow.env.get_world_size()
x = flow.ones(2) * (rank + 1)
flow.comm.reduce(x, 0)
if rank == 0:
    show("reduced", x)
t = flow.tensor([float(rank)])
if rank == 1:
    got = [flow.zeros(1) for _ in range(size)]
    flow.comm.gather(t, gather_list=got, dst=1)
    show("gathered", got)
else:
    flow.comm.gather(t, dst=1)
show("done", rank)
