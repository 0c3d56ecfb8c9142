# ranks: 4
import oneflow as flow
from oneflow.nn import functional as F
from shown import fixed, show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0, S1 = flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)
logits = fixed(4, 8).to_global(P, B)
labels = flow.tensor([0, 3, 5, 7]).to_global(P, B)
for name, sl, sy in [("S0", S0, S0), ("B", B, B)]:
    x = logits.to_global(sbp=sl)
    x.requires_grad = True
    loss = F.cross_entropy(x, labels.to_global(sbp=sy))
    loss.backward()
    show(name, (loss.numpy(), x.grad.numpy()))
x = logits.detach().to_global(sbp=S1)
show("S1", flow.log_softmax(x, dim=1).numpy())
