import oneflow as flow
from oneflow import nn
from shown import fill, show

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 5, padding_idx=0)
        self.lstm = nn.LSTM(5, 6, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(12, 3)

    def forward(self, ids):
        out, (h, c) = self.lstm(self.embed(ids))
        return self.fc(self.drop(flow.cat([h[0], h[1]], dim=-1)))

model = Tagger()
fill(model)
model.drop.eval()
optimizer = flow.optim.Adagrad(model.parameters(), lr=0.1)
ids = flow.tensor([[1, 4, 7, 0], [2, 5, 0, 0], [3, 6, 9, 11]])
for step in range(4):
    loss = nn.functional.cross_entropy(model(ids), flow.tensor([0, 1, 2]))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
    optimizer.step()
    show(f"step {step}", loss)
show("padding", model.embed.weight.grad[0].abs().sum())
