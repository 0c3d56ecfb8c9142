# ranks: 4
import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

P = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)

class LayerNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(flow.ones(width, placement=P, sbp=[B, B]))
        self.bias = nn.Parameter(flow.zeros(width, placement=P, sbp=[B, B]))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
        return (x - mean) / (var + 1e-5).sqrt() * self.weight + self.bias

layer = LayerNorm(6)
x = fixed(4, 6).to_global(P, [B, B]).to_global(sbp=[S0, B])
y = layer(x)
(y * fixed(4, 6, seed=1).to_global(P, [B, B]).to_global(sbp=[S0, B])).sum().backward()
show("y", (y.sbp, y.numpy()))
show("weight", layer.weight.grad.numpy())
show("bias", layer.bias.grad.numpy())
