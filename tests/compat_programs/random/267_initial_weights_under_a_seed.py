import oneflow as flow
from oneflow import nn
from shown import show

def build_model():
    return nn.Sequential(nn.Linear(4, 5), nn.Conv1d(5, 2, 3), nn.Embedding(3, 2))

flow.manual_seed(11)
a = build_model()
flow.manual_seed(11)
b = build_model()
show("same", [flow.equal(p, q) for p, q in zip(a.parameters(), b.parameters())])
c = build_model()
show("other", [flow.equal(p, q) for p, q in zip(a.parameters(), c.parameters())])
