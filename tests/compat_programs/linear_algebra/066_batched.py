import oneflow as flow
from shown import fixed, show

a, b = fixed(2, 3, 4), fixed(2, 4, 5, seed=1)
show("bmm", flow.bmm(a, b))
show("batched", flow.matmul(a, fixed(4, 2)).shape)
show("broadcast", flow.matmul(fixed(3, 1, 2, 4), fixed(5, 4, 2)).shape)
show("baddbmm", flow.baddbmm(fixed(2, 3, 5, seed=3), a, b, beta=0.5, alpha=2.0))
show("transposed", flow.bmm(a, a.transpose(1, 2)))
