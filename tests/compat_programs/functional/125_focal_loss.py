import oneflow as flow
import oneflow.nn.functional as F
from shown import fixed, show

def focal(logits, target, gamma=2.0, alpha=0.25):
    p = flow.sigmoid(logits)
    loss = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    pt = p * target + (1 - p) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - pt) ** gamma * loss).mean()

logits = fixed(4, 6)
logits.requires_grad = True
target = (fixed(4, 6, seed=2) > 0.5).float()
loss = focal(logits, target)
loss.backward()
show("loss", loss.item())
show("grad", logits.grad)
