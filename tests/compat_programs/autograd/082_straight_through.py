import oneflow as flow
from shown import show

class Round(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return flow.round(x)

    @staticmethod
    def backward(ctx, grad):
        return grad

x = flow.tensor([0.2, 1.7, -0.6], requires_grad=True)
out = Round.apply(x) * flow.tensor([1.0, 2.0, 3.0])
out.sum().backward()
show("out", out.detach())
show("grad", x.grad)
