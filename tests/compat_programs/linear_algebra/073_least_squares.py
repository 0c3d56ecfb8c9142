import oneflow as flow
from shown import fixed, show

x = flow.cat([fixed(20, 2), flow.ones(20, 1)], dim=1)
truth = flow.tensor([[2.0], [-1.0], [0.5]])
y = x @ truth
normal = flow.linalg.inv(x.t() @ x) @ x.t() @ y
show("solution", normal)
show("residual", (x @ normal - y).abs().max() < 1e-4)
