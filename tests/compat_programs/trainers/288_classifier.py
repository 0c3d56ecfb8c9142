import oneflow as flow
from oneflow import nn
from shown import fill, fixed, show

class MLP(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, classes))

    def forward(self, x):
        return self.net(x)

def evaluate(model, loader):
    model.eval()
    correct = total = 0
    with flow.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
            total += y.shape[0]
    model.train()
    return correct / total

x = fixed(60, 4)
y = (x.sum(dim=1) > 0).to(flow.int64) + (x[:, 0] > 1).to(flow.int64)
loader = flow.utils.data.DataLoader(flow.utils.data.TensorDataset(x, y), batch_size=20)
model = MLP(4, 3)
fill(model)
optimizer = flow.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
scheduler = flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
criterion = nn.CrossEntropyLoss()
for epoch in range(5):
    total = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    show(f"epoch {epoch}", (total, optimizer.param_groups[0]["lr"]))
show("accuracy", evaluate(model, loader))
