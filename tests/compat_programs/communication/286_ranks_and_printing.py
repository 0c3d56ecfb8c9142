# ranks: 4
import oneflow as flow
from shown import show

rank, size = flow.env.get_rank(), flow.env.get_world_size()
show("ranks", (rank, size, flow.env.get_local_rank(), flow.env.get_node_size()))
P = flow.placement.all("cpu")
show("all", P)
value = flow.tensor([float(rank)]).to_global(P, flow.sbp.split(0))
if rank == 0:
    show("only here", "rank 0")
show("value", value.numpy())
flow.comm.barrier()
