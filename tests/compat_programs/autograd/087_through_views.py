import oneflow as flow
from shown import fixed, show

x = fixed(2, 6)
x.requires_grad = True
y = x.view(3, 4).transpose(0, 1)[1:3]
(y * fixed(2, 3, seed=1)).sum().backward()
show("grad", x.grad)
x.grad = None
x[:, 1:4].pow(2).sum().backward()
show("slice", x.grad)
x.grad.zero_()
x.permute(1, 0).reshape(-1)[::3].sum().backward()
show("strided", x.grad)
