import oneflow as flow
from oneflow import nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

generator = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
critic = nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1))
fill(generator)
fill(critic, seed=20)
for parameter in critic.parameters():
    parameter.requires_grad = False

class Generator(nn.Graph):
    def __init__(self):
        super().__init__()
        self.g, self.d = generator, critic
        self.add_optimizer(flow.optim.SGD(generator.parameters(), lr=0.05))

    def build(self, z):
        fake = self.g(z)
        loss = F.softplus(-self.d(fake)).mean()
        loss.backward()
        return loss, fake

graph = Generator()
for step in range(3):
    loss, fake = graph(fixed(4, 2, seed=step + 9))
    show(f"step {step}", (loss, fake.detach().mean(dim=0)))
