import numpy as np
import oneflow as flow
import oneflow.nn.functional as F
from shown import fixed, show

flow.manual_seed(1)
logits = fixed(200, 4)
hard = F.gumbel_softmax(logits, tau=1.0, hard=True)
show("hard", (hard.sum(dim=1).sum(), sorted(set(hard.round().tolist()[0]))))
soft = F.gumbel_softmax(logits, tau=0.5)
show("soft", flow.allclose(soft.sum(dim=1), flow.ones(200), atol=1e-4))
noisy = fixed(3, 3) + 0.0 * flow.randn(3, 3)
show("noisy", noisy)
mixed = np.random.RandomState(0).beta(0.4, 0.4)
x = fixed(4, 3)
show("mixup", mixed * x + (1 - mixed) * x.flip(0))
