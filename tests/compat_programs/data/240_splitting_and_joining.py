import numpy as np
import oneflow as flow
from shown import show
from oneflow.utils.data import ConcatDataset, Subset, TensorDataset

a, b = TensorDataset(flow.arange(4)), TensorDataset(flow.arange(10, 13))
joined = ConcatDataset([a, b])
show("len", len(joined))
show("values", [joined[i][0].item() for i in range(7)])
show("plus", len(a + b))
order = np.random.RandomState(0).permutation(7)
first, second = Subset(joined, order[:5]), Subset(joined, order[5:])
show("sizes", (len(first), len(second)))
show("parts", [first[i][0].item() for i in range(5)] + [second[i][0].item() for i in range(2)])
