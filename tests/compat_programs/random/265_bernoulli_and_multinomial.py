import oneflow as flow
from shown import show

flow.manual_seed(0)
b = flow.bernoulli(flow.full((5000,), 0.3))
show("bernoulli", (abs(b.mean().item() - 0.3) < 0.03, sorted(set(b.tolist()))))
show("p", flow.bernoulli(flow.zeros(10), p=1.0).sum())
m = flow.multinomial(flow.tensor([0.0, 0.0, 1.0]), 4, replacement=True)
show("certain", m)
m = flow.multinomial(flow.ones(2, 5), 5)
show("without", [sorted(row.tolist()) for row in m])
