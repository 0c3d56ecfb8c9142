import oneflow as flow
from shown import show

flow.manual_seed(7)
a, b = flow.rand(3), flow.randn(2, 2)
flow.manual_seed(7)
show("same", (flow.equal(a, flow.rand(3)), flow.equal(b, flow.randn(2, 2))))
show("next differs", flow.equal(a, flow.rand(3)))
show("range", (bool((a >= 0).all()), bool((a < 1).all())))
show("initial", flow.initial_seed())
