import oneflow as flow
from shown import fixed, show

x, w = fixed(4, 3), fixed(3, 2, seed=1)
with flow.autocast("cpu", dtype=flow.bfloat16, enabled=False):
    y = flow.matmul(x, w)
show("disabled", y)
show("enabled", flow.is_autocast_enabled())
with flow.autocast("cuda", enabled=False):
    show("inside", flow.is_autocast_enabled())
show("outside", flow.is_autocast_enabled())
