import oneflow as flow
from shown import show
from oneflow.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, Subset, SubsetRandomSampler, TensorDataset

dataset = TensorDataset(flow.arange(10))
show("sequential", list(SequentialSampler(dataset)))
show("random", sorted(RandomSampler(dataset)))
show("batches", list(BatchSampler(SequentialSampler(dataset), batch_size=4, drop_last=False)))
show("dropped", list(BatchSampler(SequentialSampler(dataset), 4, True)))
show("subset", sorted(SubsetRandomSampler([1, 3, 5])))
show("replacement", len(list(RandomSampler(dataset, replacement=True, num_samples=4))))
loader = DataLoader(Subset(dataset, [9, 0, 4]), batch_size=2)
show("loaded", [x[0] for x in loader])
loader = DataLoader(dataset, batch_sampler=BatchSampler(SequentialSampler(dataset), 5, False))
show("batch sampler", [x[0] for x in loader])
