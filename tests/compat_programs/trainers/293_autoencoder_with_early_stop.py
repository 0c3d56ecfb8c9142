import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.logvar = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        self.dec = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 6))

    def forward(self, x, noise):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        return self.dec(mu + noise * flow.exp(0.5 * logvar)), mu, logvar

model = VAE()
fill(model)
optimizer = flow.optim.Adam(model.parameters(), lr=2e-2)
best, patience = float("inf"), 0
for epoch in range(8):
    x = fixed(10, 6, seed=epoch % 2)
    out, mu, logvar = model(x, fixed(10, 2, seed=40 + epoch))
    kl = -0.5 * flow.mean(1 + logvar - mu.pow(2) - logvar.exp())
    loss = F.mse_loss(out, x) + 0.1 * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if loss.item() < best:
        best, patience = loss.item(), 0
    else:
        patience += 1
    show(f"epoch {epoch}", (loss, kl))
    if patience > 2:
        break
show("best", best)
