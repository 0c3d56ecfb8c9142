import oneflow as flow
import oneflow.nn.functional as F
from shown import fixed, show

weight = fixed(4, 6)
down, up = fixed(2, 6, seed=1), fixed(4, 2, seed=2)
merged = flow.addmm(weight, up, down, alpha=0.5)
x = fixed(3, 6, seed=3)
apart = F.linear(x, weight) + 0.5 * F.linear(F.linear(x, down), up)
show("merged", F.linear(x, merged))
show("same", flow.allclose(F.linear(x, merged), apart, atol=1e-4))
