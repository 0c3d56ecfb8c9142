import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
fill(critic)
x = fixed(4, 3)
x.requires_grad = True
score = critic(x)
(grad,) = flow.autograd.grad(score, x, flow.ones_like(score), create_graph=True)
penalty = ((grad.norm(dim=1) - 1) ** 2).mean()
penalty.backward()
show("penalty", penalty.item())
show("weight", critic[0].weight.grad)
