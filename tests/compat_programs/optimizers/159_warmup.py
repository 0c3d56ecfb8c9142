import oneflow as flow
from oneflow import nn
from shown import show

optimizer = flow.optim.AdamW([nn.Parameter(flow.ones(2))], lr=0.1)
cosine = flow.optim.lr_scheduler.CosineDecayLR(optimizer, decay_steps=10)
scheduler = flow.optim.lr_scheduler.WarmUpLR(cosine, warmup_factor=0.1, warmup_iters=4, warmup_method="linear")
found = []
for step in range(10):
    found.append(optimizer.param_groups[0]["lr"])
    optimizer.step()
    scheduler.step()
show("linear", found)
optimizer = flow.optim.SGD([nn.Parameter(flow.ones(2))], lr=0.1)
scheduler = flow.optim.lr_scheduler.WarmUpLR(optimizer, warmup_factor=0.5, warmup_iters=3, warmup_method="constant")
found = []
for step in range(5):
    found.append(scheduler.get_last_lr()[0])
    optimizer.step()
    scheduler.step()
show("constant", found)
