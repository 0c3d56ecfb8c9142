import oneflow as flow
from shown import show

show("arange", flow.arange(5))
show("arange start", flow.arange(1, 10, 3))
show("arange float", flow.arange(0.0, 1.0, 0.25))
show("arange dtype", flow.arange(4, dtype=flow.float32))
show("linspace", flow.linspace(0, 1, 5))
show("linspace one", flow.linspace(3.0, 9.0, steps=3))
show("logspace", flow.logspace(0, 2, 3))
