import oneflow as flow
import oneflow.nn as nn
from shown import fixed, show

class Centre(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", flow.zeros(3))
        self.register_buffer("scratch", flow.ones(2), persistent=False)
        self.weight = nn.Parameter(flow.ones(3))

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(dim=0)
        return (x - self.mean) * self.weight

layer = Centre()
show("first", layer(fixed(4, 3)))
show("mean", layer.mean)
layer.eval()
show("eval", layer(fixed(4, 3, seed=1)))
show("keys", list(layer.state_dict().keys()))
show("buffers", [n for n, _ in layer.named_buffers()])
