import oneflow as flow
from shown import show

show("default", flow.get_default_dtype())
flow.set_default_dtype(flow.float64)
show("double", (flow.tensor([1.5]).dtype, flow.ones(2).dtype))
flow.set_default_dtype(flow.float32)
show("float", (flow.tensor([1.5]).dtype, flow.zeros(2).dtype))
try:
    flow.set_default_dtype(flow.int32)
    show("int", "no error")
except Exception:
    show("int", "error")
