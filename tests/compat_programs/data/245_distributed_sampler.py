import oneflow as flow
from shown import show
from oneflow.utils.data.distributed import DistributedSampler

class Numbers(flow.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return i

for rank in range(3):
    sampler = DistributedSampler(Numbers(), num_replicas=3, rank=rank, shuffle=False)
    show(f"rank {rank}", (len(sampler), list(sampler)))
dropped = DistributedSampler(Numbers(), num_replicas=3, rank=0, shuffle=False, drop_last=True)
show("dropped", list(dropped))
shuffled = [DistributedSampler(Numbers(), num_replicas=2, rank=r, shuffle=True, seed=1) for r in range(2)]
for s in shuffled:
    s.set_epoch(3)
show("all", sorted(i for s in shuffled for i in s))
