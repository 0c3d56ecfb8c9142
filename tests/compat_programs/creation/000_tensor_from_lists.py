import oneflow as flow
from shown import show

x = flow.tensor([[1, 2, 3], [4, 5, 6]])
y = flow.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=flow.float32, requires_grad=True)
z = flow.tensor([True, False, True])
show("ints", x)
show("floats", y.detach())
show("bools", z)
show("leaf", (y.is_leaf, y.requires_grad, x.requires_grad))
show("sizes", (x.shape, x.size(0), x.size(-1), x.ndim, x.numel(), x.nelement(), x.dim()))
