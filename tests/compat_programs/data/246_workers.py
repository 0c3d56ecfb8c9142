import numpy as np
import oneflow as flow
from shown import show

class Cubes(flow.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return np.float32(i) ** 3, np.int64(i)

if __name__ == "__main__":
    loader = flow.utils.data.DataLoader(Cubes(), batch_size=3, num_workers=2)
    show("one", [(x, y) for x, y in loader])
    show("two", sum(x.sum().item() for x, _ in loader))
