import oneflow as flow
from oneflow import nn
from oneflow.nn import functional as F
from shown import fill, fixed, show

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.bn(self.b(a)))
        return self.out(flow.cat([a, self.up(b)], dim=1))

def dice(logits, target):
    p = flow.softmax(logits, dim=1)[:, 1]
    t = target.to(flow.float32)
    return 1 - (2 * (p * t).sum() + 1) / (p.sum() + t.sum() + 1)

net = Net()
fill(net)
optimizer = flow.optim.RMSprop(net.parameters(), lr=1e-2)
for step in range(3):
    x = fixed(2, 1, 8, 8, seed=step)
    target = (x[:, 0] > 0).to(flow.int64)
    logits = net(x)
    loss = F.cross_entropy(logits, target) + dice(logits, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(f"step {step}", loss)
net.eval()
prediction = net(fixed(1, 1, 8, 8, seed=7)).argmax(dim=1)
show("iou", prediction.shape)
