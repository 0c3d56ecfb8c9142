import oneflow as flow
from shown import fixed, show

table = fixed(5, 3)
table.requires_grad = True
ids = flow.tensor([0, 2, 2, 4])
table[ids].sum().backward()
show("rows", table.grad)
table.grad = None
flow.gather(table, 1, flow.tensor([[0, 0], [1, 2], [2, 2], [0, 1], [1, 1]])).sum().backward()
show("gather", table.grad)
table.grad = None
flow.where(table > 0, table * 2, table * 0.1).sum().backward()
show("where", table.grad)
table.grad = None
table.max(dim=1)[0].sum().backward()
show("max", table.grad)
