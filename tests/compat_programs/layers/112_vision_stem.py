import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

class PatchEmbed(nn.Module):
    def __init__(self, size=8, patch=4, width=6):
        super().__init__()
        self.num_patches = (size // patch) ** 2
        self.proj = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(flow.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(flow.zeros(1, self.num_patches + 1, width))

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        cls = self.cls_token.expand(x.shape[0], -1, -1)
        return flow.cat((cls, x), dim=1) + self.pos_embed

layer = PatchEmbed()
fill(layer)
out = layer(fixed(2, 3, 8, 8))
out.sum().backward()
show("out", out.detach())
show("names", [n for n, _ in layer.named_parameters()])
show("cls", layer.cls_token.grad)
