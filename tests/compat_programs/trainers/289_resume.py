import os
import tempfile

import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

def make():
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    fill(model)
    optimizer = flow.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.01)
    scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    return model, optimizer, scheduler

def epoch(model, optimizer, scheduler, number):
    loss = F.mse_loss(model(fixed(8, 3, seed=number)), fixed(8, 1, seed=number + 100))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()

whole = make()
show("whole", [epoch(*whole, i) for i in range(6)])
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint")
    first = make()
    losses = [epoch(*first, i) for i in range(3)]
    flow.save({"parts": [p.state_dict() for p in first], "epoch": 3}, path)
    second = make()
    saved = flow.load(path)
    for part, state in zip(second, saved["parts"]):
        part.load_state_dict(state)
    losses += [epoch(*second, i) for i in range(saved["epoch"], 6)]
show("resumed", losses)
