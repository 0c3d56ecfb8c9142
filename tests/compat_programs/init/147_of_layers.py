import oneflow as flow
from oneflow import nn
from shown import show

flow.manual_seed(0)
linear = nn.Linear(100, 50)
show("linear", (linear.weight.abs().max().item() <= 0.1001, linear.bias.abs().max().item() <= 0.1001))
conv = nn.Conv2d(4, 8, 3)
show("conv", conv.weight.abs().max().item() <= (1 / 36) ** 0.5 + 1e-5)
embedding = nn.Embedding(1000, 32)
show("embedding", (abs(embedding.weight.std().item() - 1) < 0.03, abs(embedding.weight.mean().item()) < 0.02))
norm = nn.LayerNorm(8)
show("norm", (norm.weight, norm.bias))
bn = nn.BatchNorm2d(2)
show("bn", (bn.weight, bn.running_var))
