import oneflow as flow
from shown import fixed, show

P, B = flow.placement("cpu", [0]), flow.sbp.broadcast
with flow.utils.global_view.global_mode(True, placement=P, sbp=B):
    x = flow.zeros(2, 3)
    y = flow.randn(2, 2)
show("x", (x.is_global, x.sbp))
show("y", (y.is_global, y.shape))
tree = {"a": fixed(2), "b": [fixed(3), 5, "text"]}
moved = flow.utils.global_view.to_global(tree, placement=P, sbp=B)
show("moved", moved)
back = flow.utils.global_view.to_local(moved)
show("back", back)
show("outside", flow.ones(1).is_global)
