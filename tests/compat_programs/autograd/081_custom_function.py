import oneflow as flow
from shown import show
from oneflow import autograd

class Cube(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad

x = flow.tensor([1.0, 2.0, -1.0], requires_grad=True)
y = Cube.apply(x)
y.sum().backward()
show("y", y.detach())
show("grad", x.grad)
