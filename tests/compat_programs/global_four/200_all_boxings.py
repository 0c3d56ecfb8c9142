# ranks: 4
import oneflow as flow
from shown import show

P = flow.placement("cpu", [0, 1, 2, 3])
S0, S1, B, PS = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum
value = flow.arange(32, dtype=flow.float32).reshape(4, 8)
for source in [S0, S1, B, PS]:
    x = value.to_global(P, B).to_global(sbp=source)
    for target in [S0, S1, B, PS]:
        y = x.to_global(sbp=target)
        show(f"{source} {target}".replace("oneflow.sbp.", "").replace("sbpjax.sbp.", ""), (y.sbp, y.to_local().shape, y.numpy().sum()))
