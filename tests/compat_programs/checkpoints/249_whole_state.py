import tempfile

import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

model = nn.Linear(3, 2)
fill(model)
optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
scheduler = flow.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
for step in range(3):
    optimizer.zero_grad()
    model(fixed(4, 3, seed=step)).pow(2).mean().backward()
    optimizer.step()
    scheduler.step()
with tempfile.TemporaryDirectory() as folder:
    flow.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": 3, "best": 0.5}, folder + "/all")
    saved = flow.load(folder + "/all")
show("keys", sorted(saved.keys()))
show("numbers", (saved["epoch"], saved["best"]))
show("weight", saved["model"]["weight"])
other = nn.Linear(3, 2)
other.load_state_dict(saved["model"])
resumed = flow.optim.Adam(other.parameters(), lr=0.1)
resumed.load_state_dict(saved["optimizer"])
plan = flow.optim.lr_scheduler.StepLR(resumed, 2, 0.5)
plan.load_state_dict(saved["scheduler"])
resumed.zero_grad()
other(fixed(4, 3, seed=9)).pow(2).mean().backward()
resumed.step()
show("next", other.weight.detach())
show("epoch", plan.last_step)
