import oneflow as flow
from shown import fixed, show

x = fixed(3, 4)
index = flow.tensor([[0, 2], [1, 1], [3, 0]])
show("gather", flow.gather(x, 1, index))
show("method", x.gather(0, flow.tensor([[0, 1, 2, 0]])))
labels = flow.tensor([2, 0, 1])
picked = flow.log_softmax(x, dim=1).gather(1, labels.unsqueeze(1)).squeeze(1)
show("picked", picked)
show("nll", -picked.mean())
