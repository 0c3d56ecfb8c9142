import numpy as np
import oneflow as flow
from shown import fixed, show

x = fixed(2, 3)
show("numpy", x.numpy().shape)
show("list", [[round(v, 3) for v in row] for row in x.tolist()])
show("iter", [row.sum().item() for row in x])
show("len", len(x))
show("bool", (bool(flow.tensor(1.0)), bool(flow.tensor([0]))))
show("array", np.asarray(x.numpy()).mean())
show("contains format", "tensor(" in str(x))
