import oneflow as flow
from shown import fixed, show

x = fixed(3, 4)
show("norm", flow.norm(x))
show("norm dim", x.norm(dim=1))
show("norm 1", flow.linalg.norm(x, ord=1, dim=1))
show("inf", flow.linalg.vector_norm(x, ord=float("inf"), dim=0))
show("fro", flow.linalg.matrix_norm(x, ord="fro"))
show("unit", x / x.norm(dim=-1, keepdim=True))
show("norm p", x.norm(p=3, dim=0))
