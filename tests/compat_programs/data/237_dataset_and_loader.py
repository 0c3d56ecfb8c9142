import oneflow as flow
from shown import show

class Squares(flow.utils.data.Dataset):
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        return flow.tensor([float(i)]), i * i

    def __len__(self):
        return self.n

loader = flow.utils.data.DataLoader(Squares(7), batch_size=3)
for i, (x, y) in enumerate(loader):
    show(f"x {i}", x)
    show(f"y {i}", y)
show("len", (len(loader), len(loader.dataset)))
show("last", len(flow.utils.data.DataLoader(Squares(7), batch_size=3, drop_last=True)))
