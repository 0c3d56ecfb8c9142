import oneflow as flow
from shown import fixed, show

a, b = fixed(2, 3), fixed(3, 4, seed=1)
show("matmul", flow.matmul(a, b))
show("@", a @ b)
show("mm", flow.mm(a, b))
show("mv", flow.mv(a, fixed(3)))
show("dot", flow.dot(fixed(4), fixed(4, seed=2)))
show("vector", flow.matmul(fixed(3), b))
show("outer", fixed(2).unsqueeze(1) * fixed(3).unsqueeze(0))
