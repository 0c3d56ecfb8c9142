import oneflow as flow
from shown import show

x = flow.tensor([3, 1, 3, 2, 1, 3])
show("bincount", flow.bincount(x))
show("weights", flow.bincount(x, weights=flow.ones(6) * 0.5))
values, inverse, counts = flow.unique(x, return_inverse=True, return_counts=True)
show("unique", values)
show("inverse", inverse)
show("counts", counts)
show("search", flow.searchsorted(flow.tensor([1.0, 3.0, 5.0]), flow.tensor([0.0, 3.0, 6.0])))
show("right", flow.searchsorted(flow.tensor([1, 3, 5]), flow.tensor([3]), right=True))
