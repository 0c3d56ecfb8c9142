import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

class Stack(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(depth)])
        self.heads = nn.ModuleDict({"a": nn.Linear(3, 1), "b": nn.Linear(3, 2)})
        self.scales = nn.ParameterList([nn.Parameter(flow.ones(1) * (i + 1)) for i in range(depth)])

    def forward(self, x, head):
        for layer, scale in zip(self.layers, self.scales):
            x = flow.tanh(layer(x)) * scale
        return self.heads[head](x)

model = Stack(2)
fill(model.layers)
fill(model.heads, seed=10)
show("a", model(fixed(2, 3), "a"))
show("b", model(fixed(2, 3), "b"))
show("names", [n for n, _ in model.named_parameters()])
model.layers.append(nn.Linear(3, 3))
show("len", (len(model.layers), list(model.heads.keys()), "a" in model.heads))
