import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), nn.Sigmoid())
fill(generator)
fill(discriminator, seed=50)
g_opt = flow.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.999))
d_opt = flow.optim.Adam(discriminator.parameters(), lr=1e-2, betas=(0.5, 0.999))
criterion = nn.BCELoss()
for step in range(3):
    real, z = fixed(6, 3, seed=step), fixed(6, 2, seed=step + 30)
    d_opt.zero_grad()
    loss_real = criterion(discriminator(real), flow.ones(6, 1))
    fake = generator(z)
    loss_fake = criterion(discriminator(fake.detach()), flow.zeros(6, 1))
    (loss_real + loss_fake).backward()
    d_opt.step()
    g_opt.zero_grad()
    loss_g = criterion(discriminator(fake), flow.ones(6, 1))
    loss_g.backward()
    g_opt.step()
    show(f"step {step}", (loss_real, loss_fake, loss_g))
