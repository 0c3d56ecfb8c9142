# ranks: 4
import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, S1, S2 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1), flow.sbp.split(2)

class Linear(nn.Module):
    def __init__(self, i, o, parallel, seed):
        super().__init__()
        sbp = {"col": S0, "row": S1, "data": B}[parallel]
        self.weight = nn.Parameter((fixed(o, i, seed=seed) * 0.3).to_global(P, B).to_global(sbp=sbp))
        self.bias = nn.Parameter(flow.zeros(o, placement=P, sbp=S0 if parallel == "col" else B))
        self.parallel = parallel

    def forward(self, x):
        if self.parallel == "row":
            y = flow.matmul(x, self.weight, transpose_b=True).to_global(sbp=B)
            return y + self.bias
        return flow.matmul(x.to_global(sbp=B), self.weight, transpose_b=True) + self.bias

class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = Linear(width, 3 * width, "col", 1), Linear(width, width, "row", 2)
        self.up, self.down = Linear(width, 4 * width, "col", 3), Linear(4 * width, width, "row", 4)

    def forward(self, x):
        b, n, c = x.size()
        qkv = self.qkv(x).view(b, n, self.heads, 3 * c // self.heads).permute(0, 2, 1, 3)
        q, k, v = flow.chunk(qkv, chunks=3, dim=-1)
        weights = flow.softmax(flow.matmul(q, k, transpose_b=True, alpha=0.5), dim=-1)
        h = flow.matmul(weights, v).transpose(1, 2).reshape(b, n, c)
        x = x + self.out(h)
        return x + self.down(F.gelu(self.up(x)))

layer = Layer(8, 4)
x = fixed(2, 3, 8).to_global(P, B)
y = layer(x)
y.pow(2).mean().backward()
show("y", y.numpy())
show("sbp", (layer.qkv.weight.sbp, y.sbp))
show("qkv", layer.qkv.weight.grad.numpy().sum(axis=1))
