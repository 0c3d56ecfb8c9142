import oneflow as flow
from shown import fixed, show

a = flow.tensor([True, True, False, False])
b = flow.tensor([True, False, True, False])
show("and", flow.logical_and(a, b))
show("or", flow.logical_or(a, b))
show("xor", flow.logical_xor(a, b))
show("not", flow.logical_not(a))
show("&", (fixed(4) > 0) & a)
show("|", (fixed(4) > 0) | b)
show("~", ~a)
show("where", flow.where(a & ~b, flow.ones(4), flow.zeros(4)))
