import oneflow as flow
import oneflow.nn as nn
from shown import show

def init_weights(module, std=0.02):
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, mean=0.0, std=std)
        if module.bias is not None:
            nn.init.constant_(module.bias, 0)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=std)
    elif isinstance(module, nn.LayerNorm):
        nn.init.constant_(module.bias, 0)
        nn.init.constant_(module.weight, 1.0)

model = nn.Sequential(nn.Embedding(500, 64), nn.LayerNorm(64), nn.Linear(64, 500, bias=False))
model.apply(init_weights)
show("std", [abs(p.std().item() - 0.02) < 0.001 for p in model.parameters() if p.dim() == 2])
show("norm", (model[1].weight.sum(), model[1].bias.sum()))
