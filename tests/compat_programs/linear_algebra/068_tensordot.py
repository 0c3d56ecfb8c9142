import oneflow as flow
from shown import fixed, show

a, b = fixed(2, 3, 4), fixed(3, 4, 5, seed=1)
show("two", flow.tensordot(a, b, dims=2))
show("dims", flow.tensordot(a, b, dims=[[1, 2], [0, 1]]))
show("one", flow.tensordot(fixed(2, 3), fixed(3, 2), dims=1))
show("cross", flow.cross(fixed(2, 3), fixed(2, 3, seed=1), dim=1))
show("linalg", flow.linalg.cross(fixed(2, 3), fixed(2, 3, seed=1)))
