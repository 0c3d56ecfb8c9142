import oneflow as flow
from shown import fixed, show

flow.manual_seed(0)
i = flow.randint(2, 9, (1000,))
show("randint", (i.dtype, i.min().item() >= 2, i.max().item() <= 8, len(flow.unique(i)) == 7))
p = flow.randperm(20)
show("randperm", (p.dtype, sorted(p.tolist())))
show("like", [flow.randn_like(fixed(2, 3)).shape, flow.randint_like(fixed(2), 0, 3).shape])
n = flow.randn(10000)
show("normal", (abs(n.mean().item()) < 0.05, abs(n.std().item() - 1) < 0.05))
show("flow.normal", flow.normal(2.0, 0.1, size=(3, 2)).shape)
show("rand dtype", flow.rand(2, dtype=flow.float64).dtype)
