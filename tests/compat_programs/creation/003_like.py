import oneflow as flow
from shown import fixed, show

x = fixed(2, 3)
show("zeros_like", flow.zeros_like(x))
show("ones_like", flow.ones_like(x, dtype=flow.int64))
show("full_like", flow.full_like(x, 2.5))
show("empty_like", flow.empty_like(x).shape)
show("new_zeros", x.new_zeros(2, 2))
show("new_ones", x.new_ones((3,)))
show("new_full", x.new_full((2,), 4.0))
show("new_empty", x.new_empty(5).shape)
show("new_tensor", x.new_tensor([1, 2, 3]))
