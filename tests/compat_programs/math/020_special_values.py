import oneflow as flow
from shown import show

x = flow.tensor([1.0, float("inf"), float("-inf"), float("nan")])
show("isnan", flow.isnan(x))
show("isinf", flow.isinf(x))
show("isfinite", flow.isfinite(x))
show("clean", flow.where(flow.isfinite(x), x, flow.zeros_like(x)))
show("nansum", flow.nansum(x[[0, 3]]))
show("isinf sum", x.isinf().sum().item())
