import os
import tempfile

import oneflow as flow
import oneflow.nn as nn
from shown import fill, fixed, show

with tempfile.TemporaryDirectory() as folder:
    model, best = nn.Linear(2, 1), None
    fill(model)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.2)
    for epoch in range(4):
        optimizer.zero_grad()
        loss = (model(fixed(6, 2)) - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
        flow.save({"epoch": epoch, "state": model.state_dict()}, os.path.join(folder, "last"))
        if best is None or loss.item() < best:
            best = loss.item()
            flow.save(model.state_dict(), os.path.join(folder, "best"))
    show("files", sorted(os.listdir(folder)))
    show("epoch", flow.load(os.path.join(folder, "last"))["epoch"])
    show("state", flow.load(os.path.join(folder, "best")))
    show("best", best)
