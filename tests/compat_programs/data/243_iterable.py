import numpy as np
import oneflow as flow
from shown import show
from oneflow.utils.data import DataLoader, IterableDataset

class Stream(IterableDataset):
    def __init__(self, start, stop):
        self.start, self.stop = start, stop

    def __iter__(self):
        for i in range(self.start, self.stop):
            yield np.float32(i)

show("batches", [b for b in DataLoader(Stream(3, 10), batch_size=3)])
show("dropped", [b for b in DataLoader(Stream(0, 5), batch_size=2, drop_last=True)])
