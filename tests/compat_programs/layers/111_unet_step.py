import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

class Double(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(1, o), nn.SiLU())

    def forward(self, x):
        return self.net(x)

class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle, self.up = Double(1, 4), Double(4, 4), Double(8, 4)
        self.pool, self.grow = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = self.grow(self.middle(self.pool(skip)))
        return self.out(self.up(flow.cat([skip, deep], dim=1)))

model = UNet()
fill(model)
x = fixed(1, 1, 4, 4)
loss = nn.MSELoss()(model(x), x)
loss.backward()
show("loss", loss.item())
show("grad", model.down.net[0].weight.grad)
