# ranks: 4
import oneflow as flow
from shown import show

rank, size = flow.env.get_rank(), flow.env.get_world_size()
mine = flow.tensor([float(rank), rank * 10.0])
parts = [flow.zeros(2) for _ in range(size)]
flow.comm.all_gather(parts, mine)
show("parts", parts)
show("together", flow.cat(parts, dim=0))
out = flow.zeros(size * 2)
flow.comm.all_gather_into_tensor(out, mine)
show("into", out)
