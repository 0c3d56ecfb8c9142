"""A program as a user writes it; type checkers find nothing wrong, and know every type."""

import sbpjax as flow
from sbpjax import nn, optim

P = flow.placement("cpu", [0, 1, 2, 3])


class Model(nn.Module):
    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.up = nn.Linear(features, 4 * features)
        self.down = nn.Linear(4 * features, classes)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        hidden = nn.functional.gelu(self.up(x))
        return self.down(hidden)


model = Model(8, 4).to_global(P, flow.sbp.broadcast)
adam = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


class Train(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.model = model
        self.loss = nn.CrossEntropyLoss()
        self.add_optimizer(adam)

    def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
        loss = self.loss(self.model(x), y)
        loss.backward()
        return loss


train = Train()
x = flow.randn(16, 8).to_global(P, sbp=flow.sbp.split(0))
y = flow.randint(0, 4, (16,), placement=P, sbp=flow.sbp.split(0))
for step in range(2):
    loss = train(x, y)
    print(step, loss.to_local().item(), model(x).argmax(dim=1).shape[0])

values, places = x.to_local().float().max(dim=1)
total = flow.cat([values, values * 2.5], dim=0).sum(0, keepdim=True) / 2 > x.mean().to_local()
