import oneflow as flow
from oneflow import nn
from shown import show

w = nn.Parameter(flow.ones(1))
optimizer = flow.optim.SGD([w], lr=1.0)
scheduler = flow.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
rates = []
for epoch in range(6):
    optimizer.zero_grad()
    (w * 0.1).sum().backward()
    optimizer.step()
    rates.append(optimizer.param_groups[0]["lr"])
    scheduler.step()
show("rates", rates)
show("w", w.detach())
show("last", scheduler.get_last_lr())
