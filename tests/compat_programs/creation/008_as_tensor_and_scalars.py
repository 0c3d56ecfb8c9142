import numpy as np
import oneflow as flow
from shown import show

x = flow.as_tensor([1.0, 2.0, 3.0])
y = flow.as_tensor(np.array([4, 5, 6]))
s = flow.tensor(3.25)
show("x", x)
show("y", y)
show("s", s)
show("item", (s.item(), type(s.item()).__name__, flow.tensor(7).item()))
show("as it is", flow.as_tensor(x) is x)
show("float", float(s) + int(flow.tensor(2)))
show("list", flow.tensor([[1, 2], [3, 4]]).tolist())
