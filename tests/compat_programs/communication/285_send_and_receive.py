# ranks: 4
import oneflow as flow
from shown import show

rank = flow.env.get_rank()
if rank == 0:
    flow.comm.send(flow.arange(3, dtype=flow.float32), 1)
elif rank == 1:
    x = flow.zeros(3)
    flow.comm.recv(0, out=x)
    show("received", x)
    flow.comm.send(x * 2, 2)
elif rank == 2:
    show("shaped", flow.comm.recv(1))
flow.comm.barrier()
show("rank", rank)
