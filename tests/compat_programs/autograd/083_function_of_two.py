import oneflow as flow
from shown import fixed, show

class Scaled(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w, x + w

    @staticmethod
    def backward(ctx, first, second):
        x, w = ctx.saved_tensors
        return first * w + second, first * x + second

x, w = fixed(3), fixed(3, seed=1)
x.requires_grad_(True)
w.requires_grad_(True)
a, b = Scaled.apply(x, w)
(a.sum() + 2 * b.sum()).backward()
show("x", x.grad)
show("w", w.grad)
