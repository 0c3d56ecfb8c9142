import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fixed, show

logits = fixed(4, 3)
target = (fixed(4, 3, seed=1) > 0).to(flow.float32)
show("logits", F.binary_cross_entropy_with_logits(logits, target))
show("bce", F.binary_cross_entropy(flow.sigmoid(logits), target))
show("pos", nn.BCEWithLogitsLoss(pos_weight=flow.tensor([1.0, 2.0, 3.0]))(logits, target))
show("none", nn.BCELoss(reduction="none")(flow.sigmoid(logits), target))
