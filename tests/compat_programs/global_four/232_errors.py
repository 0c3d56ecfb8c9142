# ranks: 4
import oneflow as flow
from shown import show

P = flow.placement("cpu", [0, 1, 2, 3])
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
x = flow.ones(4, 4, placement=P, sbp=S0)
for name, action in {
    "local and global": lambda: x + flow.ones(4, 4),
    "two placements": lambda: x + flow.ones(4, 4, placement=flow.placement("cpu", [0, 1]), sbp=B),
    "two sbps for one dim": lambda: flow.ones(4, placement=P, sbp=[B, B]),
    "not an sbp": lambda: x.to_global(sbp="split"),
}.items():
    try:
        action()
        show(name, "no error")
    except Exception:
        show(name, "error")
