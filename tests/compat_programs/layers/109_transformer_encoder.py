import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

class Block(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, width))

    def forward(self, x):
        h = self.norm1(x)
        x = x + flow.softmax(h @ h.transpose(1, 2), dim=-1) @ self.mix(h)
        return x + self.mlp(self.norm2(x))

model = nn.Sequential(*[Block(6, 12) for _ in range(3)])
fill(model)
model.eval()
show("out", model(fixed(2, 4, 6)))
show("count", sum(p.numel() for p in model.parameters()))
