import oneflow as flow
from shown import fixed, show

x = fixed(3, 4)
indices = flow.tensor([[0, 1], [2, 3]])
show("gather_nd", flow.gather_nd(x, indices))
show("scatter_nd", flow.scatter_nd(indices, flow.tensor([5.0, 6.0]), [3, 4]))
show("update", flow.tensor_scatter_nd_update(x, indices, flow.tensor([0.0, 0.0])))
show("rows", flow.gather_nd(x, flow.tensor([[2], [0]])))
