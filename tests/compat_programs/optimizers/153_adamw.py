import oneflow as flow
from oneflow import nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 1))
fill(model)
decay = [p for n, p in model.named_parameters() if p.dim() > 1]
plain = [p for n, p in model.named_parameters() if p.dim() <= 1]
optimizer = flow.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=1e-2)
for step in range(5):
    loss = F.mse_loss(model(fixed(8, 4, seed=step)), flow.ones(8, 1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
show("loss", loss.item())
show("weights", [p.detach().sum() for p in model.parameters()])
