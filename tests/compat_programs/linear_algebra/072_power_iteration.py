import oneflow as flow
from shown import fixed, show

a = fixed(4, 4)
a = a @ a.t()
v = flow.ones(4)
for _ in range(50):
    v = flow.mv(a, v)
    v = v / v.norm()
show("value", flow.dot(v, flow.mv(a, v)))
show("vector", v.abs())
