import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

x = fixed(2)
show("is_tensor", (flow.is_tensor(x), flow.is_tensor([1]), isinstance(x, flow.Tensor)))
show("parameter", isinstance(nn.Parameter(x), flow.Tensor))
show("nonzero", (flow.is_nonzero(flow.tensor([1.0])), flow.is_nonzero(flow.tensor([0]))))
show("numel", flow.numel(flow.ones(2, 3)))
show("type", (x.type(), flow.tensor([1]).type(), flow.tensor([True]).dtype))
show("hash", len({x, x, x.clone()}))
