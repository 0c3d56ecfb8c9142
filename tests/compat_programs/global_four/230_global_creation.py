# ranks: 4
import oneflow as flow
from shown import show

P = flow.placement("cpu", [0, 1, 2, 3])
S0, B, PS = flow.sbp.split(0), flow.sbp.broadcast, flow.sbp.partial_sum
show("arange", flow.arange(8, placement=P, sbp=S0).to_local())
show("full", flow.full((4, 2), 2.0, placement=P, sbp=S0).to_local())
show("eye", flow.eye(4, placement=P, sbp=B).numpy())
show("tensor", flow.tensor([[1.0, 2.0], [3.0, 4.0]], placement=P, sbp=B).to_local())
show("ones P", flow.ones(4, placement=P, sbp=B).to_global(sbp=PS).numpy())
show("rand", (flow.rand(8, 2, placement=P, sbp=S0).to_local().shape, flow.randint(0, 3, (4,), placement=P, sbp=B).shape))
x = flow.randn(4, 4, placement=P, sbp=B)
show("same everywhere", flow.allclose(x.to_local(), x.to_global(sbp=S0).to_global(sbp=B).to_local()))
