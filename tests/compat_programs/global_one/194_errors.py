import oneflow as flow
from shown import show

P, B = flow.placement("cpu", [0]), flow.sbp.broadcast
x = flow.ones(2, 2, placement=P, sbp=B)
for name, action in {
    "mixed": lambda: x + flow.ones(2, 2),
    "placement of local": lambda: flow.ones(2).placement,
    "sbp of local": lambda: flow.ones(2).sbp,
    "to_global without": lambda: flow.ones(2).to_global(),
    "to_local of local": lambda: flow.ones(2).to_local(),
    "device of global": lambda: x.device,
}.items():
    try:
        action()
        show(name, "no error")
    except Exception:
        show(name, "error")
