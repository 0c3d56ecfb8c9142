import oneflow as flow
from shown import fixed, show

x = fixed(2, 6)
values, order = flow.sort(x, dim=1)
show("values", values)
show("order", order)
down, _ = x.sort(dim=-1, descending=True)
show("down", down)
show("argsort", flow.argsort(x, dim=0))
top, where = flow.topk(x, 3, dim=1)
show("top", top)
show("where", where)
show("least", x.topk(2, dim=1, largest=False)[0])
