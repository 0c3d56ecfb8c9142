# ranks: 4
import oneflow as flow
from shown import show

rank, size = flow.env.get_rank(), flow.env.get_world_size()
out = flow.zeros(2)
if rank == 0:
    flow.comm.scatter(out, [flow.ones(2) * i for i in range(size)], src=0)
else:
    flow.comm.scatter(out, src=0)
show("scattered", out)
result = flow.zeros(3)
flow.comm.reduce_scatter(result, [flow.ones(3) * (i + rank) for i in range(size)])
show("reduce_scatter", result)
flat = flow.zeros(2)
flow.comm.reduce_scatter_tensor(flat, flow.arange(8, dtype=flow.float32) + rank)
show("tensor", flat)
