import numpy as np
import oneflow as flow
from shown import show

array = np.arange(12, dtype=np.float32).reshape(3, 4)
a = flow.tensor(array)
b = flow.from_numpy(array)
c = flow.tensor(array.astype(np.float64))
d = flow.tensor(array, dtype=flow.int64)
for name, value in [("a", a), ("b", b), ("c", c), ("d", d)]:
    show(name, value)
show("back", a.numpy().sum())
show("same type", a.numpy().dtype == array.dtype)
