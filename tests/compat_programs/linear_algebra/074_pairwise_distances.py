import oneflow as flow
from oneflow.nn import functional as F
from shown import fixed, show

x, y = fixed(4, 3), fixed(5, 3, seed=1)
square = (x**2).sum(1, keepdim=True) + (y**2).sum(1).unsqueeze(0) - 2 * x @ y.t()
show("square", square)
show("nearest", square.argmin(dim=1))
show("cosine", F.normalize(x, dim=1) @ F.normalize(y, dim=1).t())
show("difference", flow.norm(x[:, None] - y[None], dim=-1))
