import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv = nn.Linear(width, width * 3)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attention = (q @ k.transpose(-2, -1)) * self.scale
        attention = attention.softmax(dim=-1)
        return self.proj((attention @ v).transpose(1, 2).reshape(b, n, c))

layer = Attention(8, 2)
fill(layer)
x = fixed(2, 4, 8)
out = layer(x)
out.pow(2).mean().backward()
show("out", out.detach())
show("grad", layer.qkv.weight.grad.sum(dim=1))
