import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fixed, show

logits = fixed(4, 5)
labels = flow.tensor([0, 2, 4, 1])
show("mean", F.cross_entropy(logits, labels))
show("none", nn.CrossEntropyLoss(reduction="none")(logits, labels))
show("sum", nn.CrossEntropyLoss(reduction="sum")(logits, labels))
show("weight", nn.CrossEntropyLoss(weight=flow.tensor([1.0, 2.0, 1.0, 0.5, 1.0]))(logits, labels))
show("ignore", nn.CrossEntropyLoss(ignore_index=2)(logits, labels))
dense = fixed(2, 3, 4, 4)
show("dense", F.cross_entropy(dense, flow.zeros(2, 4, 4, dtype=flow.int64)))
