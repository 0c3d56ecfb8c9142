# ranks: 4
import oneflow as flow
from oneflow import nn
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)

class VocabEmbedding(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.weight = nn.Parameter(fixed(size, width).to_global(P, B).to_global(sbp=S0))

    def forward(self, ids):
        weight = self.weight
        return flow._C.gather(weight, ids, axis=0).to_global(sbp=B)

layer = VocabEmbedding(8, 3)
ids = flow.tensor([[1, 5], [7, 0]]).to_global(P, B)
out = layer(ids)
show("out", out.numpy())
(out * fixed(2, 2, 3, seed=4).to_global(P, B)).sum().backward()
show("grad", layer.weight.grad.numpy())
