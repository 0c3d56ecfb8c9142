import oneflow as flow
from oneflow import nn
from shown import fill, show

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))

m = Tied()
fill(m)
out = m(flow.tensor([1, 3]))
out.sum().backward()
show("out", out.detach())
show("parameters", len(list(m.parameters())))
show("state", sorted(m.state_dict().keys()))
show("grad", m.embed.weight.grad)
