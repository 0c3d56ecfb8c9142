import oneflow as flow
from oneflow import nn
from shown import show

w = flow.empty(64, 32, 3, 3)
nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu")
show("fan out", abs(w.std().item() / (2 / (64 * 9)) ** 0.5 - 1) < 0.05)
nn.init.kaiming_uniform_(w, a=5**0.5)
show("bound", w.abs().max().item() <= (1 / (32 * 9)) ** 0.5 + 1e-5)
nn.init.kaiming_normal_(w)
show("fan in", abs(w.std().item() / (2 / (32 * 9)) ** 0.5 - 1) < 0.05)
