import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

embedding = nn.Embedding(7, 3, padding_idx=0)
fill(embedding)
ids = flow.tensor([[1, 2, 0], [6, 6, 3]])
out = embedding(ids)
show("out", out)
out.sum().backward()
show("grad", embedding.weight.grad)
pretrained = nn.Embedding.from_pretrained(fixed(4, 2)) if hasattr(nn.Embedding, "from_pretrained") else nn.Embedding(4, 2, _weight=fixed(4, 2))
show("given", pretrained(flow.tensor([3, 0])).detach())
