import oneflow as flow
import oneflow.nn as nn
from shown import show

w = flow.empty(300, 200)
nn.init.normal_(w, mean=1.0, std=0.02)
show("normal", (abs(w.mean().item() - 1) < 0.001, abs(w.std().item() - 0.02) < 0.001))
nn.init.trunc_normal_(w, std=0.02, a=-0.03, b=0.03)
show("truncated", (w.abs().max().item() <= 0.0301, abs(w.mean().item()) < 0.001))
nn.init.uniform_(w, -0.5, 0.5)
show("uniform", (w.min().item() >= -0.5, w.max().item() <= 0.5, abs(w.mean().item()) < 0.01))
