# ranks: 4
import oneflow as flow
from shown import show

rank, size = flow.env.get_rank(), flow.env.get_world_size()
inputs = [flow.tensor([rank * 10.0 + i]) for i in range(size)]
outputs = [flow.zeros(1) for _ in range(size)]
flow.comm.all_to_all(outputs, inputs)
show("outputs", outputs)
