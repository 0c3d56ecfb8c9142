"""Run by test_divergence.py on three ranks: groups of two of them run what they like, until two members differ."""

import sbpjax as flow
from sbpjax import distributed as dist
from sbpjax._core.runtime import collective_trace

rank = dist.get_rank()
groups = {}
for pair in ((0, 1), (1, 2)):
    groups[pair] = dist.new_group(pair)
part = flow.placement("cpu", [1, 2])
for _ in range(20):
    if rank in (0, 1):
        dist.all_reduce(flow.ones(3), group=groups[0, 1])
    if rank:
        for _again in range(2):
            dist.all_reduce(flow.ones(3), group=groups[1, 2])
        y = flow.ones(4, placement=part, sbp=flow.sbp.split(0)) * 1 + 1
dist.barrier()
assert set(collective_trace.trails) - {(0, 1, 2)} == {pair for pair in groups if rank in pair}
print(f"rank {rank} is in step", flush=True)
if rank:
    y + rank if rank == 1 else y * rank
dist.barrier()
