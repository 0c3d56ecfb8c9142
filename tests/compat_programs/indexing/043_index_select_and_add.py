import oneflow as flow
from shown import fixed, show

x = fixed(4, 3)
index = flow.tensor([3, 1, 1])
show("select", flow.index_select(x, 0, index))
show("columns", x.index_select(1, flow.tensor([2, 0])))
y = flow.zeros(4, 3)
show("index_add", flow.index_add(y, 0, index, flow.ones(3, 3)))
y.index_add_(0, index, flow.ones(3, 3), alpha=2.0)
show("in place", y)
