import oneflow as flow
import oneflow.nn as nn
from shown import show

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(flow.ones(2))
        self.register_parameter("beta", None)
        self.log = nn.Parameter(flow.zeros(1), requires_grad=False)

    def forward(self, x):
        return x * self.gamma * self.log.exp()

m = Scale()
show("names", [n for n, _ in m.named_parameters()])
m.beta = nn.Parameter(flow.zeros(2))
show("later", sorted(n for n, _ in m.named_parameters()))
m(flow.ones(3, 2)).sum().backward()
show("grad", (m.gamma.grad, m.log.grad is None))
m.zero_grad()
show("zeroed", m.gamma.grad is None or float(m.gamma.grad.abs().sum()) == 0)
m.requires_grad_(False)
show("frozen", [p.requires_grad for p in m.parameters()])
del m.beta
show("deleted", hasattr(m, "beta"))
