import oneflow as flow
from shown import fixed, show

logits = fixed(8, 5)
labels = flow.tensor([0, 1, 2, 3, 4, 0, 1, 2])
prediction = logits.argmax(dim=1)
show("top1", (prediction == labels).to(flow.float32).mean().item())
_, top3 = logits.topk(3, 1, True, True)
correct = top3.t().eq(labels.reshape(1, -1).expand_as(top3.t()))
show("top3", correct.reshape(-1).to(flow.float32).sum().item() * 100.0 / 8)
show("confusion", flow.bincount(labels * 5 + prediction, minlength=25).reshape(5, 5))
