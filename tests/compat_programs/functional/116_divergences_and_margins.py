import oneflow as flow
import oneflow.nn as nn
from oneflow.nn import functional as F
from shown import fixed, show

logits, teacher = fixed(4, 5), fixed(4, 5, seed=1)
student = F.log_softmax(logits / 2.0, dim=1)
soft = F.softmax(teacher / 2.0, dim=1)
show("kl", F.kl_div(student, soft, reduction="batchmean"))
show("kl log", nn.KLDivLoss(reduction="sum", log_target=True)(student, soft.log()))
show("nll", nn.NLLLoss()(student, flow.tensor([0, 1, 2, 3])))
a, p, n = fixed(4, 3), fixed(4, 3, seed=2), fixed(4, 3, seed=3)
show("triplet", nn.TripletMarginLoss(margin=1.0, p=2)(a, p, n))
show("ranking", nn.MarginRankingLoss(margin=0.5)(fixed(4), fixed(4, seed=1), flow.tensor([1.0, -1.0, 1.0, 1.0])))
