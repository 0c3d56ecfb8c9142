import oneflow as flow
from shown import fixed, show

a = fixed(3, 3) + 3 * flow.eye(3)
inverse = flow.linalg.inv(a)
show("inverse", inverse)
show("identity", a @ inverse)
show("method", a.inverse())
show("batch", flow.inverse(fixed(2, 2, 2) + 4 * flow.eye(2)))
