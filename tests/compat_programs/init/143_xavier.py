import oneflow as flow
import oneflow.nn as nn
from shown import show

flow.manual_seed(1)
w = flow.empty(200, 300)
nn.init.xavier_uniform_(w)
bound = (6 / 500) ** 0.5
show("bounds", (w.abs().max().item() <= bound + 1e-6, abs(w.std().item() * 3**0.5 / bound - 1) < 0.03))
nn.init.xavier_normal_(w, gain=2.0)
show("normal", (abs(w.std().item() / (2 * (2 / 500) ** 0.5) - 1) < 0.03, abs(w.mean().item()) < 0.01))
show("shape", w.shape)
