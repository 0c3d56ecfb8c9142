import oneflow as flow
import oneflow.nn as nn
from shown import show

optimizer = flow.optim.SGD([nn.Parameter(flow.ones(1))], lr=1.0)
first = flow.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
second = flow.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
scheduler = flow.optim.lr_scheduler.SequentialLR(optimizer, schedulers=[first, second], milestones=[2])
found = []
for _ in range(5):
    found.append(optimizer.param_groups[0]["lr"])
    optimizer.step()
    scheduler.step()
show("sequential", found)
optimizer = flow.optim.SGD([nn.Parameter(flow.ones(1))], lr=1.0)
plateau = flow.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.1, patience=1)
found = []
for loss in [1.0, 0.9, 0.95, 0.92, 0.91, 0.8]:
    plateau.step(loss)
    found.append(optimizer.param_groups[0]["lr"])
show("plateau", found)
