import oneflow as flow
from oneflow import nn
from shown import show

class Mul(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

    def extra_repr(self):
        return f"factor={self.factor}"

show("repr", repr(nn.Sequential(Mul(2), nn.Linear(2, 3, bias=False), nn.Dropout(0.1))))
try:
    Mul(2).missing
except AttributeError:
    show("attribute", "AttributeError")
show("out", nn.Sequential(Mul(2), Mul(3))(flow.ones(2)))
try:
    nn.Module()(flow.ones(1))
except NotImplementedError:
    show("forward", "NotImplementedError")
except Exception:
    show("forward", "Exception")
