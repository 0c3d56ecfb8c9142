import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

model = nn.Linear(3, 2)
fill(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-2)
losses = []
for step in range(5):
    loss = model(fixed(4, 3, seed=step)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
show("losses", losses)
show("weight", model.weight.detach())
