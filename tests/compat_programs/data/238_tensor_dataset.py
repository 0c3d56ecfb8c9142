import oneflow as flow
from shown import fixed, show
from oneflow.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(fixed(6, 2), flow.arange(6))
show("item", dataset[2])
show("len", len(dataset))
for i, (x, y) in enumerate(DataLoader(dataset, batch_size=4, shuffle=False)):
    show(f"batch {i}", (x.shape, y))
total = sum(x.sum().item() for x, _ in DataLoader(dataset, batch_size=2, shuffle=True))
show("total", total)
