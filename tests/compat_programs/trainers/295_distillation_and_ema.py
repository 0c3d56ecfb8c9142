import copy

import oneflow as flow
import oneflow.nn as nn
import oneflow.nn.functional as F
from shown import fill, fixed, show

teacher = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
student = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
fill(teacher, scale=0.6)
fill(student, seed=60)
teacher.eval()
for p in teacher.parameters():
    p.requires_grad = False
shadow = copy.deepcopy(student)
optimizer = flow.optim.AdamW(student.parameters(), lr=0.05)
warm = flow.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
for step in range(5):
    x, y = fixed(8, 4, seed=step), flow.tensor([0, 1, 2, 0, 1, 2, 0, 1])
    with flow.no_grad():
        target = F.softmax(teacher(x) / 2.0, dim=1)
    logits = student(x)
    soft = F.kl_div(F.log_softmax(logits / 2.0, dim=1), target, reduction="batchmean") * 4.0
    loss = 0.5 * soft + 0.5 * F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warm.step()
    with flow.no_grad():
        for averaged, now in zip(shadow.parameters(), student.parameters()):
            averaged.copy_(averaged * 0.9 + now * 0.1)
    show(f"step {step}", (loss, soft))
show("shadow", [p.detach().sum() for p in shadow.parameters()])
