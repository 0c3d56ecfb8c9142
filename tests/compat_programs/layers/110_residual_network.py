import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

class Basic(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.down = None
        if stride != 1 or inplanes != planes:
            self.down = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x if self.down is None else self.down(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)

model = nn.Sequential(Basic(3, 4), Basic(4, 6, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
fill(model)
x = fixed(3, 3, 8, 8)
show("train", model(x))
model.eval()
show("eval", model(x))
show("keys", len(model.state_dict()))
