import oneflow as flow
from shown import show

P, B = flow.placement("cpu", [0]), flow.sbp.broadcast
for name, value in {
    "rand": flow.rand(2, 3, placement=P, sbp=B),
    "randn": flow.randn(4, placement=P, sbp=flow.sbp.split(0)),
    "randint": flow.randint(0, 5, (3,), placement=P, sbp=B),
    "randperm": flow.randperm(6, placement=P, sbp=B),
    "normal": flow.normal(0.0, 1.0, size=(2, 2), placement=P, sbp=B),
    "empty": flow.empty(2, 5, placement=P, sbp=B),
}.items():
    show(name, (value.shape, value.dtype, value.sbp, value.is_global))
